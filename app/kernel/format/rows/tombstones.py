"""Tombstones: what a delete leaves of its key, so that an older row that arrives later stays away.

A tombstone has the key, the ordering value of the delete, and its commit. It is no row of the table: tombstones are in
files of their own, whose columns are those of `tombstone_schema`. As in data files, null stands for the commit that
wrote the file.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.members import key_fields, key_rows, member_path
from app.kernel.format.rows.meta_columns import META_FIELDS

VERSION_FIELD: Final = META_FIELDS[0]
ORDERING_COLUMN: Final = "_hw_ordering"
"""The ordering value of the delete; null is less than any other."""
DELETED_AT_FIELD: Final = pa.field("_hw_deleted_at", pa.timestamp("us", "UTC"))
"""The time of the delete's commit."""
KEEP_FIELD: Final = pa.field("_hw_keep_seconds", pa.int32(), nullable=False)
"""How long after that time rows are compared with the tombstone, in seconds."""
_SECOND: Final = 1_000_000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def tombstone_schema(dataset: DatasetDefinition) -> pa.Schema:
    """The columns of a tombstone file: those of the key, whose structs have the members of the key alone, and the
    ordering value, version, time and duration of the tombstone.
    """
    schema = dataset.schema.to_arrow()
    nothing = schema.empty_table().select(key_fields(dataset))
    keys = key_rows(nothing, dataset.record_key).schema
    fields = [schema.field(field.name).with_type(field.type) for field in keys]
    ordering = pa.field(ORDERING_COLUMN, ordering_type(dataset))
    return pa.schema([*fields, ordering, VERSION_FIELD, DELETED_AT_FIELD, KEEP_FIELD])


def ordering_type(dataset: DatasetDefinition) -> pa.DataType:
    """The type of the ordering values; null without an ordering field."""
    if dataset.ordering_field is None:
        return pa.null()
    schema = dataset.schema.to_arrow()
    name, *members = member_path(dataset.ordering_field, schema.names)
    kind = schema.field(name).type
    for member in members:
        kind = kind.field(member).type
    return kind


def dated(rows: pa.Table, written_at: datetime | None) -> pa.Table:
    """Tombstones with the times of their deletes; other rows unchanged. `written_at`: that of the file."""
    at = rows.schema.get_field_index(DELETED_AT_FIELD.name)
    if written_at is None or at < 0:
        return rows
    times = pc.fill_null(rows.column(at), pa.scalar(written_at, DELETED_AT_FIELD.type))
    return rows.set_column(at, DELETED_AT_FIELD, times)


def expiries(tombstones: pa.Table) -> np.ndarray:
    """The last times at which a row is compared with each tombstone: microseconds since 1970 (int64)."""
    deleted_at = tombstones.column(DELETED_AT_FIELD.name).cast(pa.int64()).fill_null(0).to_numpy()
    return last_times(deleted_at, tombstones.column(KEEP_FIELD.name).to_numpy().astype(np.int64))


def last_times(deleted_at: np.ndarray, keep_seconds: np.ndarray) -> np.ndarray:
    """The last times at which rows are compared with tombstones of deletes at these times, both in microseconds since
    1970 (int64). `keep_seconds` (int64): how long they last.
    """
    times: np.ndarray = deleted_at + keep_seconds * _SECOND
    return times


def time_of(instant: int | None) -> datetime | None:
    """The time at these microseconds from 1970, in UTC; None for None."""
    return None if instant is None else _EPOCH + timedelta(microseconds=instant)


def instant(time: datetime | None) -> int:
    """The microseconds from 1970 to a time; 0 for None."""
    return 0 if time is None else int(pa.scalar(time, DELETED_AT_FIELD.type).value)
