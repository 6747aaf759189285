"""The columns of Parquet files: their ids, and the types that other engines read.

    layout  columns
    1       each column and each member has a field id; unsigned integers of a dataset are stored signed
    null    files of earlier releases: neither members nor the columns of the format have ids, unsigned integers have
            the annotation UINT

Files of both layouts are read under the schema of the dataset, which has the unsigned types.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.kept_fields import KEPT_COLUMN
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, OFFSET_COLUMN, VERSION_COLUMN
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import DELETED_AT_FIELD, KEEP_FIELD, ORDERING_COLUMN
from app.kernel.format.schema.types import id_metadata

LAYOUT: Final = 1
"""The layout of the files that this release writes."""
OWN_FIELD_IDS: Final = {
    # That of `_last_updated_sequence_number` in Iceberg, where null is the sequence number of the file, too.
    VERSION_COLUMN: 2_147_483_539,
    # None of these is the id of a column of Iceberg.
    OFFSET_COLUMN: 2_147_483_448,
    OP_COLUMN: 2_147_483_449,
    CORRECTS_COLUMN: 2_147_483_450,
    KEPT_COLUMN: 2_147_483_451,
    ROW_COLUMN: 2_147_483_452,
    JOB_COLUMN: 2_147_483_453,
    ORDERING_COLUMN: 2_147_483_454,
    DELETED_AT_FIELD.name: 2_147_483_455,
    KEEP_FIELD.name: 2_147_483_456,
}
"""The field ids of the columns of the format itself, by name."""
_SIGNED: Final = {pa.uint8(): pa.int32(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}


def file_schema(schema: pa.Schema) -> pa.Schema:
    """The columns as a file of the present layout has them."""
    return pa.schema([_file_field(field) for field in schema], metadata=schema.metadata)


def file_type(kind: pa.DataType) -> pa.DataType:
    """The type that a file of the present layout has in place of this one: signed where it is unsigned."""
    if pa.types.is_struct(kind):
        return pa.struct([_with_file_type(kind.field(at)) for at in range(kind.num_fields)])
    if pa.types.is_map(kind):
        return pa.map_(_with_file_type(kind.key_field), _with_file_type(kind.item_field))
    if pa.types.is_list(kind):
        return pa.list_(_with_file_type(kind.value_field))
    return _SIGNED.get(kind, kind)


def as_stored(rows: pa.Table, stored: pa.Schema) -> pa.Table:
    """The rows with the types of a file. `stored`: their schema in the file."""
    if _types(rows.schema) == _types(stored):
        return rows
    columns = [
        column if column.type.equals(field.type) else column.cast(field.type)
        for column, field in zip(rows.columns, stored, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=stored)


def _types(schema: Iterable[pa.Field]) -> list[pa.DataType]:
    return [field.type for field in schema]


def _file_field(field: pa.Field) -> pa.Field:
    number = OWN_FIELD_IDS.get(field.name)
    if number is None:
        return _with_file_type(field)
    # No table of another engine has these columns, so their types stay.
    return field.with_metadata({**(field.metadata or {}), **id_metadata(number)})


def _with_file_type(field: pa.Field) -> pa.Field:
    return field.with_type(file_type(field.type))
