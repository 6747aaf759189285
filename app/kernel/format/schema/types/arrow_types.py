"""The flat types of Arrow columns: of those in the format, and of those in input."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import pyarrow as pa

from app.kernel.format.schema.types.binary import BINARY
from app.kernel.format.schema.types.decimals import DECIMAL_PRECISION_MAX, Decimal
from app.kernel.format.schema.types.flat import FlatType
from app.kernel.format.schema.types.names import PLAIN_TYPES
from app.kernel.format.schema.types.real import DOUBLE
from app.kernel.format.schema.types.strings import STRING
from app.kernel.format.schema.types.timestamps import TICKS, Timestamp

_STORED: Final[dict[pa.DataType, FlatType]] = {
    **{each.arrow: each for each in PLAIN_TYPES},
    pa.large_string(): STRING,
    pa.large_binary(): BINARY,
    pa.float16(): DOUBLE,
}
_INPUT: Final = {form: each for each in PLAIN_TYPES for form in each.arrow_forms}


@lru_cache(maxsize=1_024)
def stored_type(kind: pa.DataType) -> FlatType | None:
    """The type whose values an array of the Arrow type has; None if it has none of a type in its own form."""
    if pa.types.is_decimal128(kind):
        return Decimal(kind.precision, kind.scale) if _is_decimal(kind) else None
    if pa.types.is_timestamp(kind):
        return Timestamp(kind.unit, zoned=kind.tz is not None) if kind.unit in TICKS else None
    return _STORED.get(kind)


def inferred_type(kind: pa.DataType) -> FlatType | None:
    """The type of a new column whose values arrive in a flat Arrow type; None if it is not supported."""
    if pa.types.is_decimal(kind):
        return Decimal(kind.precision, kind.scale) if _is_decimal(kind) else None
    if pa.types.is_timestamp(kind):
        unit = "us" if kind.unit == "us" else "ms"
        return Timestamp(unit, kind.tz is not None) if kind.unit != "ns" else None
    if pa.types.is_fixed_size_binary(kind):
        return BINARY
    return _INPUT.get(kind)


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(0 <= kind.scale <= kind.precision <= DECIMAL_PRECISION_MAX)
