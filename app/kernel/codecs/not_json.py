"""Texts that are not JSON because of single values: NaN, Infinity, and halves of surrogate pairs."""

from __future__ import annotations

from typing import Any

from app.kernel.codecs.value_parser import Members, NonFinite, parse_json
from app.kernel.format.errors import FieldError
from app.kernel.format.member_errors import escaped


def reason_of(text: bytes, error: Exception) -> str:
    """Why a text is no JSON, in words. `error`: that of the decoder."""
    fault = value_that_is_no_json(text)
    return str(error) if fault is None else f"{fault.pointer or '/'}: {fault.detail}"


def value_that_is_no_json(text: bytes) -> FieldError | None:
    """Where the first NaN, Infinity or lone surrogate stands, if that is all that keeps the text from being JSON."""
    try:
        pending: list[tuple[str, Any]] = [("", parse_json(text.decode()))]
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
                for name, _ in value:
                    if (escape := _lone_surrogate(name)) is not None:
                        return FieldError(pointer=pointer, detail=f"a member's name has {escape}")
                pending += [(f"{pointer}/{escaped(name)}", each) for name, each in reversed(value)]
            case list():
                pending += [(f"{pointer}/{number}", each) for number, each in reversed([*enumerate(value)])]
            case str() if (escape := _lone_surrogate(value)) is not None:
                return FieldError(pointer=pointer, detail=f"the text has {escape}")
    return None


def _lone_surrogate(text: str) -> str | None:
    """What is wrong with the first half of a surrogate pair in a text; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"the escape \\u{ord(text[error.start]):04x}, which is half of a surrogate pair and no character"
        )
    return None
