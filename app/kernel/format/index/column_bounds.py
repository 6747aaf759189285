"""Bounds of columns as the catalogue keeps them."""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import decimal
from typing import Any, Final

from app.kernel.format.schema.texts import TICKS
from app.kernel.format.schema.types import DataType, Decimal, Primitive, Timestamp

BOUND_CHARACTERS_MAX: Final = 64
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def stored_bound(value: Any) -> Any:
    """The least or greatest value of a column as a JSON value; None if there is no value, or one too long to keep.

    Booleans and numbers stay; bytes are base64, times ISO 8601, decimals and strings their text.
    """
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
    try:
        match data_type, bound:
            case Decimal(), str():
                return decimal.Decimal(bound)
            case Timestamp(unit, _), str():
                return _ticks(dt.datetime.fromisoformat(bound), unit)
            case Primitive("date"), str():
                return (dt.date.fromisoformat(bound) - _EPOCH.date()).days
            case Primitive("binary"), str():
                return base64.b64decode(bound, validate=True)
            case Primitive("string"), str():
                return bound
            case Primitive("boolean"), bool():
                return bound
            case Primitive("float" | "double"), int() | float():
                return bound
            case Primitive("string" | "binary" | "date" | "boolean"), _:
                return None
            case Primitive(), int():
                return bound
    except (ValueError, binascii.Error, decimal.InvalidOperation):
        pass
    return None


def _ticks(moment: dt.datetime, unit: str) -> int:
    moment = moment.replace(tzinfo=moment.tzinfo or dt.UTC)
    microseconds = (moment - _EPOCH) // dt.timedelta(microseconds=1)
    return microseconds * TICKS[unit] // TICKS["us"]
