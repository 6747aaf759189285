"""Arrow types of the service as types of Spark, and Arrow data in the types that Spark expects."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

_SIGNED = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
"""Spark has no unsigned integers, so theirs are the next larger signed types."""


def spark_schema(schema: pa.Schema) -> StructType:
    """The columns of Spark, all nullable."""
    return from_arrow_schema(pa.schema([pa.field(each.name, _signed(each.type)) for each in schema]))


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


def _cast(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    return column if column.type == wanted else column.cast(wanted)


def _signed(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(member.name, _signed(member.type)) for member in kind.fields])
    if pa.types.is_map(kind):
        return pa.map_(_signed(kind.key_type), _signed(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_signed(kind.value_type))
    if pa.types.is_dictionary(kind):
        return _signed(kind.value_type)
    return _SIGNED.get(kind, kind)
