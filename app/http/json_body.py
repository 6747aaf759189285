"""JSON request bodies: decoded into one type, with a JSON pointer to what does not fit."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from app.kernel.codecs.value_parser import Members, NonFinite, parse_json
from app.kernel.format.errors import FieldError, InvalidRequest, MalformedBody
from app.kernel.format.member_errors import escaped, field_error

_T = TypeVar("_T")


def decode_json(body: bytes, type_: type[_T]) -> _T:
    """The value of the body. Raises MalformedBody if it is no JSON, InvalidRequest if it is no `type_`."""
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        fault = field_error(str(error), type_)
        raise InvalidRequest(f"{fault.pointer or '/'}: {fault.detail}", [fault]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        if (number := _non_finite(body)) is not None:
            raise InvalidRequest(f"{number.pointer}: {number.detail}", [number]) from None
        raise MalformedBody(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply") from None


def require_member(change: msgspec.Struct) -> None:
    """Raises InvalidRequest for a change of a resource without a member. All members of its type are optional."""
    if all(getattr(change, field.name) == field.default for field in msgspec.structs.fields(change)):
        names = ", ".join(change.__struct_encode_fields__)
        detail = f"expected at least one of {names}"
        raise InvalidRequest(f"the body changes nothing: {detail}", [FieldError(pointer="", detail=detail)])


def _non_finite(body: bytes) -> FieldError | None:
    """Where the first NaN or Infinity stands, if that is all that keeps the body from being JSON."""
    try:
        pending: list[tuple[str, Any]] = [("", parse_json(body.decode()))]
    except (ValueError, RecursionError):
        return None
    while pending:
        pointer, value = pending.pop()
        match value:
            case NonFinite() if pointer:
                return FieldError(
                    pointer=pointer, detail=f"{value} is no JSON number; send null or leave it out"
                )
            case Members():
                pending += [(f"{pointer}/{escaped(name)}", each) for name, each in reversed(value)]
            case list():
                pending += [(f"{pointer}/{number}", each) for number, each in reversed([*enumerate(value)])]
    return None
