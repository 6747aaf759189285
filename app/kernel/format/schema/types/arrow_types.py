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
from app.kernel.format.schema.types.uuids import UUID

_STORED: Final[dict[pa.DataType, FlatType]] = {
    **{each.arrow: each for each in PLAIN_TYPES},
    pa.large_string(): STRING,
    pa.large_binary(): BINARY,
    pa.float16(): DOUBLE,
    pa.uuid(): UUID,
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


def annotated(schema: pa.Schema) -> pa.Schema:
    """The schema of columns that leave the service: fields of types with an extension of Arrow have its name.

    The columns stay as they are stored. Readers that do not know the extension read the same bytes.
    """
    return pa.schema([_annotated(field) for field in schema], metadata=schema.metadata)


def _annotated(field: pa.Field) -> pa.Field:
    kind = field.type
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_annotated(member) for member in kind]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_annotated(kind.key_field), _annotated(kind.item_field)))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_annotated(kind.value_field)))
    flat = stored_type(kind)
    if flat is None or flat.extension is None:
        return field
    extension = {b"ARROW:extension:name": flat.extension.encode(), b"ARROW:extension:metadata": b""}
    return field.with_metadata({**(field.metadata or {}), **extension})


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(0 <= kind.scale <= kind.precision <= DECIMAL_PRECISION_MAX)
