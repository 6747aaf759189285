"""The five meta columns that a reader may request beside a dataset's own.

    _hw_commit_time       the time of the commit that gave the row its values
    _hw_commit_seqno      `version-offset`: that commit, and its change in the feed; only the version where the
                          change of a row is unknown (producers other than full). Copies of a row keep it
    _hw_record_key        `field:value,…` of the key, values as in JSON; null without a key
    _hw_partition_path    the folder of the row's partition
    _hw_file_name         the data file of the row; null for a row of a log, until compaction

They are derived from the meta columns in files and from the catalogue. A reader of an earlier version may request two
more, which are not null if a later change has retracted the row's values:

    _hw_corrected_by        the offset of that change
    _hw_corrected_version   its version
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.json.objects import to_objects
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import column_of, key_fields
from app.kernel.format.rows.meta_columns import (
    FILE_NAME_FIELD,
    META_FIELDS,
    OFFSET_COLUMN,
    PARTITION_FIELD,
    VERSION_COLUMN,
)
from app.kernel.format.schema.schema import Field

COMMIT_TIME_FIELD: Final = pa.field("_hw_commit_time", pa.timestamp("us", tz="UTC"))
SEQUENCE_FIELD: Final = pa.field("_hw_commit_seqno", pa.string())
RECORD_KEY_FIELD: Final = pa.field("_hw_record_key", pa.string())
CORRECTED_BY_FIELD: Final = pa.field("_hw_corrected_by", pa.int64())
CORRECTED_VERSION_FIELD: Final = pa.field("_hw_corrected_version", pa.int64())
CORRECTED_ON_READ: Final = (CORRECTED_BY_FIELD, CORRECTED_VERSION_FIELD)
META_ON_READ: Final = (
    COMMIT_TIME_FIELD,
    SEQUENCE_FIELD,
    RECORD_KEY_FIELD,
    PARTITION_FIELD,
    FILE_NAME_FIELD,
)
_TYPES: Final = {pa.string(): "string", pa.int64(): "int64"}


def result_fields(columns: Iterable[pa.Field]) -> tuple[Field, ...]:
    """Meta columns as fields of a result's schema."""
    return tuple(
        Field(id=0, name=each.name, type=_TYPES.get(each.type, "timestamp"), nullable=True)
        for each in columns
    )


META_RESULT_FIELDS: Final = result_fields(META_ON_READ)
CORRECTED_RESULT_FIELDS: Final = result_fields(CORRECTED_ON_READ)
META_INPUT_NAMES: Final = frozenset(field.name for field in (*META_ON_READ, *CORRECTED_ON_READ, *META_FIELDS))
"""The meta columns that rows of a read have; as input they have no effect."""
# The columns to read, beside the key, to derive the meta columns.
META_SOURCES: Final = (*META_FIELDS, PARTITION_FIELD, FILE_NAME_FIELD)


def versions_of(rows: pa.Table) -> list[int]:
    """The distinct commits that gave the rows their values."""
    versions: list[int] = rows.column(VERSION_COLUMN).drop_null().unique().to_pylist()
    return versions


def meta_on_read(
    rows: pa.Table, key: Sequence[str], commit_times: Mapping[int, datetime]
) -> dict[str, pa.ChunkedArray]:
    """The five columns by name. `rows` has the key columns and `META_SOURCES`; `commit_times` has all its
    `versions_of`.
    """
    versions = rows.column(VERSION_COLUMN)
    times = [commit_times.get(version) for version in versions.to_pylist()]
    return {
        COMMIT_TIME_FIELD.name: pa.chunked_array([pa.array(times, COMMIT_TIME_FIELD.type)]),
        SEQUENCE_FIELD.name: _sequence_numbers(versions, rows.column(OFFSET_COLUMN)),
        RECORD_KEY_FIELD.name: pa.chunked_array([_record_keys(rows, key)]),
        PARTITION_FIELD.name: rows.column(PARTITION_FIELD.name),
        FILE_NAME_FIELD.name: rows.column(FILE_NAME_FIELD.name),
    }


def with_meta(
    table: pa.Table,
    rows: pa.Table,
    definition: DatasetDefinition,
    masked_columns: Collection[str],
    commit_times: Mapping[int, datetime],
) -> pa.Table:
    """The columns of `table`, then the five columns of the same rows; null in those that repeat a masked column."""
    columns = meta_on_read(rows, definition.record_key, commit_times)
    for field in META_ON_READ:
        secret = not set(masked_columns).isdisjoint(_sources_of(definition, field.name))
        column = pa.chunked_array([pa.nulls(rows.num_rows, field.type)]) if secret else columns[field.name]
        table = table.append_column(field, column)
    return table


def with_corrections(table: pa.Table, by: pa.Array, versions: pa.Array) -> pa.Table:
    """The columns of `table`, then the change that has retracted each row's values, and its version: int64."""
    for field, values in zip(CORRECTED_ON_READ, (by, versions), strict=True):
        table = table.append_column(field, values)
    return table


def _sources_of(definition: DatasetDefinition, meta_column: str) -> Sequence[str]:
    """The columns whose values a meta column repeats."""
    if meta_column == RECORD_KEY_FIELD.name:
        return key_fields(definition)
    if meta_column in (PARTITION_FIELD.name, FILE_NAME_FIELD.name):
        return partition_sources(definition)
    return ()


def _sequence_numbers(versions: pa.ChunkedArray, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
    version = pc.cast(versions, pa.string())
    # A negative offset is relative to its file and cannot be resolved here.
    feed_offsets = pc.if_else(pc.less(offsets, 0), pa.scalar(None, pa.int64()), offsets)
    with_offset = pc.binary_join_element_wise(version, pc.cast(feed_offsets, pa.string()), "-")
    return pc.coalesce(with_offset, version)


def _record_keys(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    if not key:
        return pa.nulls(rows.num_rows, pa.string())
    columns = [
        [f"{name}:{_text(value)}" for chunk in column_of(rows, name).chunks for value in to_objects(chunk)]
        for name in key
    ]
    return pa.array([",".join(parts) for parts in zip(*columns, strict=True)], pa.string())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
