"""Bounds of columns as the catalogue keeps them."""

from __future__ import annotations

import base64
from typing import Any, Final

from app.kernel.format.schema.types import DataType, FlatType

BOUND_CHARACTERS_MAX: Final = 64


def stored_bound(value: Any, data_type: DataType) -> Any:
    """The least or greatest value of a column as a JSON value; None if there is no value, or one too long to keep.

    Booleans and numbers stay; bytes are base64, times ISO 8601, decimals and strings their text.
    """
    if value is not None and isinstance(data_type, FlatType):
        value = data_type.stored(value)
    match value:
        case None | bool() | int() | float():
            return value
        case bytes():
            text = base64.b64encode(value).decode()
        case _:
            text = value.isoformat() if hasattr(value, "isoformat") else str(value)
    return text if len(text) <= BOUND_CHARACTERS_MAX else None


def comparable_bound(bound: Any, data_type: DataType) -> Any:
    """A stored bound as a literal of the type, comparable with others; None if unknown or not of the type."""
    if not isinstance(data_type, FlatType):
        return None
    try:
        return data_type.comparable(bound)
    except (ValueError, ArithmeticError):
        return None
