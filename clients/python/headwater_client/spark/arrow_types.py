"""Arrow types of the service as types of Spark, and Arrow data in the types that Spark expects."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

_UUID_BYTES = pa.binary(16)
_SPARK = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uuid(): pa.string(),
    _UUID_BYTES: pa.string(),
}
"""Spark has no unsigned integers, so theirs are the next larger signed types, and no UUIDs, which are texts."""


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of Spark, all nullable."""
    return from_arrow_schema(pa.schema([pa.field(each.name, _mapped(each.type, _SPARK)) for each in schema]))


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema in which Spark expects rows."""
    return to_arrow_schema(schema, timezone="UTC")


def conforming(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches with exactly this schema: the columns in its order, each cast to its type.

    Raises pyarrow.ArrowInvalid for a value that its type cannot hold, KeyError for a missing column.
    """
    for batch in batches:
        columns = [_cast(batch.column(field.name), field.type) for field in schema]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def as_stored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """The values of Spark in the type of a dataset's column. Raises pyarrow.ArrowInvalid.

    A column of UUIDs stays one of texts, which the service reads; within lists, maps and structs it reads bytes.
    """
    if kind == pa.uuid():
        return column
    stored = _mapped(kind, {pa.uuid(): _UUID_BYTES})
    if stored == kind:
        return column.cast(kind)
    return pa.array([_with_bytes(value, kind) for value in column.to_pylist()], stored)


def _with_bytes(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if kind == pa.uuid():
        try:
            return uuid.UUID(value).bytes
        except ValueError:
            raise pa.ArrowInvalid(f"{value[:60]!r} is no UUID") from None
    if pa.types.is_struct(kind):
        return {member.name: _with_bytes(value[member.name], member.type) for member in kind.fields}
    if pa.types.is_map(kind):
        return [(_with_bytes(key, kind.key_type), _with_bytes(each, kind.item_type)) for key, each in value]
    if pa.types.is_list(kind):
        return [_with_bytes(each, kind.value_type) for each in value]
    return value


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    if column.type == wanted:
        return column
    # Files of a scan have the bytes of UUIDs as they are stored; no other values have a fixed size.
    named = _mapped(column.type, {_UUID_BYTES: pa.uuid()})
    if _mapped(named, {pa.uuid(): _UUID_BYTES}) == _mapped(named, {}):
        return column.cast(wanted)
    return pa.array(_with_texts(column.cast(named).to_pylist()), wanted)


def _with_texts(value: Any) -> Any:
    match value:
        case uuid.UUID():
            return str(value)
        case list():
            return [_with_texts(each) for each in value]
        case tuple():
            return tuple(_with_texts(each) for each in value)
        case dict():
            return {name: _with_texts(each) for name, each in value.items()}
    return value


def _mapped(kind: pa.DataType, types: Mapping[pa.DataType, pa.DataType]) -> pa.DataType:
    """The type with others in the place of some flat ones, at any depth."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, _mapped(member.type, types)) for member in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_mapped(kind.key_type, types), _mapped(kind.item_type, types))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_mapped(kind.value_type, types))
    if pa.types.is_dictionary(kind):
        return _mapped(kind.value_type, types)
    return types.get(kind, kind)
