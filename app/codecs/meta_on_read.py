"""The five meta columns that a reader may ask for beside a dataset's own.

    _hw_commit_time       when the commit was that gave the row its values
    _hw_commit_seqno      `version-offset`: that commit, and the change in the feed that did; just the version where
                          that is not known of rows (producers other than full). A row that is copied elsewhere keeps it
    _hw_record_key        `field:value,…` of the key, values as in JSON; null without a key
    _hw_partition_path    the folder of the row's partition
    _hw_file_name         the data file that holds the row; null for a row that a log has put there, until compaction

They are made of what files store of each row and of what the catalogue knows. A reader of an earlier version may ask
for two more, which are not null where a later change has taken the row's values back:

    _hw_corrected_by        the offset of that change
    _hw_corrected_version   its version
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.codecs.json.objects import to_objects
from app.format.rows.meta_columns import (
    FILE_NAME_FIELD,
    META_FIELDS,
    OFFSET_COLUMN,
    PARTITION_FIELD,
    VERSION_COLUMN,
)

COMMIT_TIME_FIELD: Final = pa.field("_hw_commit_time", pa.timestamp("us", tz="UTC"))
SEQUENCE_FIELD: Final = pa.field("_hw_commit_seqno", pa.string())
RECORD_KEY_FIELD: Final = pa.field("_hw_record_key", pa.string())
CORRECTED_BY_FIELD: Final = pa.field("_hw_corrected_by", pa.int64())
CORRECTED_VERSION_FIELD: Final = pa.field("_hw_corrected_version", pa.int64())
META_ON_READ: Final = (
    COMMIT_TIME_FIELD,
    SEQUENCE_FIELD,
    RECORD_KEY_FIELD,
    PARTITION_FIELD,
    FILE_NAME_FIELD,
)
# What has to be read of each row, beside its key, to make them.
META_SOURCES: Final = (*META_FIELDS, PARTITION_FIELD, FILE_NAME_FIELD)


def versions_of(rows: pa.Table) -> list[int]:
    """The commits that gave the rows their values, each once."""
    found: list[int] = rows.column(VERSION_COLUMN).drop_null().unique().to_pylist()
    return found


def meta_on_read(
    rows: pa.Table, key: Sequence[str], commit_times: Mapping[int, datetime]
) -> dict[str, pa.ChunkedArray]:
    """The five columns by name. `rows` has the key's and `META_SOURCES`; `commit_times` all `versions_of` it."""
    versions = rows.column(VERSION_COLUMN)
    times = [commit_times.get(version) for version in versions.to_pylist()]
    return {
        COMMIT_TIME_FIELD.name: pa.chunked_array([pa.array(times, COMMIT_TIME_FIELD.type)]),
        SEQUENCE_FIELD.name: _sequence_numbers(versions, rows.column(OFFSET_COLUMN)),
        RECORD_KEY_FIELD.name: pa.chunked_array([_record_keys(rows, key)]),
        PARTITION_FIELD.name: rows.column(PARTITION_FIELD.name),
        FILE_NAME_FIELD.name: rows.column(FILE_NAME_FIELD.name),
    }


def _sequence_numbers(versions: pa.ChunkedArray, offsets: pa.ChunkedArray) -> pa.ChunkedArray:
    version = pc.cast(versions, pa.string())
    # A negative offset is one that its file alone cannot tell.
    known = pc.if_else(pc.less(offsets, 0), pa.scalar(None, pa.int64()), offsets)
    with_offset = pc.binary_join_element_wise(version, pc.cast(known, pa.string()), "-")
    return pc.coalesce(with_offset, version)


def _record_keys(rows: pa.Table, key: Sequence[str]) -> pa.Array:
    if not key:
        return pa.nulls(rows.num_rows, pa.string())
    columns = [
        [f"{name}:{_text(value)}" for chunk in rows.column(name).chunks for value in to_objects(chunk)]
        for name in key
    ]
    return pa.array([",".join(parts) for parts in zip(*columns, strict=True)], pa.string())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
