"""JSON request bodies: decoded into one type, with a JSON pointer to what does not fit."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from app.kernel.codecs.not_json import value_that_is_no_json
from app.kernel.format.errors import FieldError, InvalidRequest, MalformedBody
from app.kernel.format.member_errors import field_error

_T = TypeVar("_T")


def decode_json(body: bytes, type_: type[_T]) -> _T:
    """The value of the body. Raises MalformedBody if it is no JSON, InvalidRequest if it is no `type_`."""
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        fault = field_error(str(error), type_, value=_untyped(body))
        raise InvalidRequest(f"{fault.pointer or '/'}: {fault.detail}", [fault]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if (unlike := value_that_is_no_json(body)) is not None:
            raise InvalidRequest(f"{unlike.pointer or '/'}: {unlike.detail}", [unlike]) from None
        raise MalformedBody(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply") from None


def require_member(change: msgspec.Struct) -> None:
    """Raises InvalidRequest for a change of a resource without a member. All members of its type are optional."""
    if all(getattr(change, field.name) == field.default for field in msgspec.structs.fields(change)):
        names = ", ".join(change.__struct_encode_fields__)
        detail = f"expected at least one of {names}"
        raise InvalidRequest(f"the body changes nothing: {detail}", [FieldError(pointer="", detail=detail)])


def _untyped(body: bytes) -> Any:
    """The value of the body, whatever its type; None for a body that is no JSON behind a wrong member."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
