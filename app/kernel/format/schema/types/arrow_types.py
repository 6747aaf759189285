"""The flat types of Arrow columns: of those in the format, and of those in input."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import pyarrow as pa

from app.kernel.format.schema.types.binary import BINARY
from app.kernel.format.schema.types.decimals import DECIMAL_PRECISION_MAX, Decimal
from app.kernel.format.schema.types.flat import FlatType
from app.kernel.format.schema.types.foreign import Form, foreign_kind
from app.kernel.format.schema.types.grammar import parse_type
from app.kernel.format.schema.types.names import PLAIN_TYPES
from app.kernel.format.schema.types.real import DOUBLE
from app.kernel.format.schema.types.strings import STRING
from app.kernel.format.schema.types.syntax_error import TypeSyntaxError
from app.kernel.format.schema.types.timestamps import TICKS, Timestamp
from app.kernel.format.schema.types.uuids import UUID

_STORED: Final[dict[pa.DataType, FlatType]] = {
    **{each.arrow: each for each in PLAIN_TYPES},
    pa.large_string(): STRING,
    pa.large_binary(): BINARY,
    pa.float16(): DOUBLE,
    pa.uuid(): UUID,
}
_FIRST_WORD: Final = re.compile(r"\w+")


@lru_cache(maxsize=1_024)
def stored_type(kind: pa.DataType) -> FlatType | None:
    """The type whose values an array of the Arrow type has; None if it has none of a type in its own form."""
    if pa.types.is_decimal128(kind):
        return Decimal(kind.precision, kind.scale) if _is_decimal(kind) else None
    if pa.types.is_timestamp(kind):
        return Timestamp(kind.unit, zoned=kind.tz is not None) if kind.unit in TICKS else None
    return _STORED.get(kind)


class NoType(ValueError):
    """Values that no column holds. The message has the reason."""


def inferred_type(kind: pa.DataType) -> FlatType:
    """The type of a new column whose values arrive in a flat Arrow type. Raises NoType."""
    foreign = foreign_kind(Form.ARROW, _name(kind))
    if foreign is None:
        raise NoType(
            f"is of Arrow type {kind}, which no column has; cast it to a type that a column has, such as string"
        )
    if foreign.type is None:
        raise NoType(f"is of Arrow type {kind}: {foreign.refused}")
    text = f"decimal({kind.precision}, {kind.scale})" if pa.types.is_decimal(kind) else foreign.type
    try:
        flat = parse_type(text)
    except TypeSyntaxError as error:
        raise NoType(f"is of Arrow type {kind}: {error}") from None
    assert isinstance(flat, FlatType)
    return flat


def _name(kind: pa.DataType) -> str:
    """The name of the Arrow type in the table of types."""
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name)
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}]" if kind.tz is None else f"timestamp[{kind.unit}, tz]"
    match = _FIRST_WORD.match(str(kind))
    return match[0] if match else str(kind)


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
