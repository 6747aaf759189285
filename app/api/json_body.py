"""JSON request bodies: decoded into one type, with a JSON pointer to what does not fit."""

from __future__ import annotations

import re
from typing import Final, TypeVar

import msgspec

from app.lake.errors import FieldError, InvalidRequest, MalformedBody

_T = TypeVar("_T")
_PLACE: Final = re.compile(
    r"(?P<reason>.*?)(?: - at (?:`(?:key|value)` in )?`\$?(?P<path>[^`]*)`)?", re.DOTALL
)
_STEP: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`")
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`")


def decode_json(body: bytes, type_: type[_T]) -> _T:
    """The value of the body. Raises MalformedBody if it is no JSON, InvalidRequest if it is no `type_`."""
    try:
        return msgspec.json.decode(body, type=type_)
    except msgspec.ValidationError as error:
        fault = _field_error(str(error))
        raise InvalidRequest(f"{fault.pointer or '/'}: {fault.detail}", [fault]) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MalformedBody(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply") from None


def _field_error(message: str) -> FieldError:
    place = _PLACE.fullmatch(message)
    reason, path = (place["reason"], place["path"] or "") if place else (message, "")
    pointer = "".join(f"/{_escaped(name or index)}" for name, index in _STEP.findall(path))
    if unknown := _UNKNOWN.fullmatch(reason):
        return FieldError(
            pointer=f"{pointer}/{_escaped(unknown['name'])}", detail="unknown member; remove it"
        )
    if missing := _MISSING.fullmatch(reason):
        return FieldError(pointer=f"{pointer}/{_escaped(missing['name'])}", detail="this member is required")
    return FieldError(pointer=pointer, detail=reason.replace("`", "'"))


def _escaped(step: str) -> str:
    return step.replace("~", "~0").replace("/", "~1")
