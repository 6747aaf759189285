"""Texts that are not JSON because of single values: NaN, Infinity, and halves of surrogate pairs."""

from __future__ import annotations

from app.kernel.codecs.value_parser import invalid_value, parse_json
from app.kernel.format.errors import FieldError


def reason_of(text: bytes, error: Exception) -> str:
    """Why a text is no JSON, in words. `error`: that of the decoder."""
    fault = value_that_is_no_json(text)
    return str(error) if fault is None else f"{fault.pointer or '/'}: {fault.detail}"


def value_that_is_no_json(text: bytes) -> FieldError | None:
    """Where the first NaN, Infinity or lone surrogate stands, if that is all that keeps the text from being JSON."""
    try:
        return invalid_value(parse_json(text.decode()), "")
    except (ValueError, RecursionError):
        return None
