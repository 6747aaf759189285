"""Parses columns of text into columns of values: JSON strings, CSV cells and map keys share one grammar.

boolean     true, false
integers    canonical: no sign but a minus, no leading zeros
float, double    any finite decimal notation; overflow is refused, never infinity
decimal     any decimal notation whose value the type holds exactly
date        2026-11-21, years 0001–9999
timestamp   2026-11-21T10:00:00.123456Z or with an offset (+01:00); `T` may be a space. `timestamp_ntz` has
            no zone. Fractional digits beyond the unit must be zero. Years 0001–9999 in UTC, no leap seconds.
binary      base64 of RFC 4648 with padding, canonical
All of it is vectorised and reports only whether a whole column fits; `exact` finds the value that does not.
"""

from __future__ import annotations

import binascii
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types import (
    DECIMAL_PRECISION_MAX,
    DataType,
    Decimal,
    Primitive,
    Timestamp,
    to_arrow,
)

DATE_DAYS_MIN: Final = -719_162
DATE_DAYS_MAX: Final = 2_932_896
TICKS: Final = {"ms": 1_000, "us": 1_000_000}
_ZONED: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d(:?\d\d)?)$"
_LOCAL: Final = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?$"
_SURPLUS_ZEROS: Final = {unit: rf"(\.\d{{{digits}}})0+([Z+-]|$)" for unit, digits in (("ms", 3), ("us", 6))}


class Undecodable(ValueError):
    """Some value of a column does not fit its type."""


def timestamp_bounds(unit: str) -> tuple[int, int]:
    """The first and last tick of the years 0001–9999."""
    ticks = TICKS[unit]
    return DATE_DAYS_MIN * 86_400 * ticks, (DATE_DAYS_MAX + 1) * 86_400 * ticks - 1


def parse_texts(texts: pa.StringArray, data_type: DataType) -> pa.Array:
    """The values that the texts denote; nulls stay null. Raises Undecodable or pa.ArrowInvalid."""
    match data_type:
        case Primitive("string"):
            return texts
        case Primitive("binary"):
            return _from_base64(texts)
        case Primitive("boolean"):
            truth = pc.equal(texts, "true")
            _require(pc.or_(truth, pc.equal(texts, "false")))
            return truth
        case Primitive("date"):
            return within(pc.cast(texts, pa.date32()), DATE_DAYS_MIN, DATE_DAYS_MAX)
        case Primitive("float" | "double"):
            values = pc.cast(texts, to_arrow(data_type))
            _require(pc.is_finite(values))
            return values
        case Primitive():
            values = pc.cast(texts, to_arrow(data_type))
            # Arrow also reads 007 and 0x1F; a canonical text equals the formatted value.
            _require(pc.equal(pc.cast(values, pa.string()), texts))
            return values
        case Decimal(precision, scale):
            _require(pc.match_substring_regex(texts, _fitting_decimal(precision, scale)))
            return pc.cast(texts, to_arrow(data_type))
        case Timestamp(unit, zoned):
            _require(pc.match_substring_regex(texts, _ZONED if zoned else _LOCAL))
            _require(pc.invert(pc.starts_with(texts, "0000")))
            return within(_instants(texts, data_type), *timestamp_bounds(unit))
    raise TypeError(f"{data_type} has no text form")


def within(values: pa.Array, low: int, high: int) -> pa.Array:
    """`values` if all their ticks lie within the bounds, inclusive. Raises Undecodable."""
    ticks = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    bounds = pc.min_max(ticks)
    if bounds["min"].is_valid and (bounds["min"].as_py() < low or bounds["max"].as_py() > high):
        raise Undecodable
    return values


def _instants(texts: pa.StringArray, data_type: Timestamp) -> pa.Array:
    try:
        return pc.cast(texts, to_arrow(data_type))
    except pa.ArrowInvalid:
        # Arrow accepts no more digits than the unit has; many clients send zeros there.
        trimmed = pc.replace_substring_regex(
            texts, pattern=_SURPLUS_ZEROS[data_type.unit], replacement=r"\1\2"
        )
        return pc.cast(trimmed, to_arrow(data_type))


def _fitting_decimal(precision: int, scale: int) -> str:
    """The pattern of a decimal that certainly fits, with no more than 38 digits in all.

    Arrow's cast wraps around if there are too many digits before the point, and reads 1E-400 as 0. So only texts of
    this pattern are cast; the exact reader handles all others.
    """
    surplus_zeros = DECIMAL_PRECISION_MAX - precision
    return rf"^[+-]?0?\d{{0,{precision - scale}}}(\.\d{{0,{scale}}}0{{0,{surplus_zeros}}})?$"


def _from_base64(texts: pa.StringArray) -> pa.Array:
    values = [None if text is None else base64_bytes(text) for text in texts.to_pylist()]
    return pa.array(values, pa.binary())


def base64_bytes(text: str) -> bytes:
    """The bytes of canonical, padded base64. Raises Undecodable."""
    try:
        value = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as fault:
        raise Undecodable(str(fault)) from None
    # Strict mode still accepts any unused low bits in the last character.
    if binascii.b2a_base64(value, newline=False).decode("ascii") != text:
        raise Undecodable("not the canonical base64 of these bytes")
    return value


def _require(condition: pa.BooleanArray) -> None:
    """Raises Undecodable unless the condition is true for every value that is not null."""
    if pc.all(condition, min_count=0).as_py() is False:
        raise Undecodable
