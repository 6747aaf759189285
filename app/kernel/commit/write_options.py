"""Options of a write, beside its operation and its rows."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec


class SaveMode(str, Enum):
    """What a write does if the dataset already has data."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"
    ERROR_IF_EXISTS = "error_if_exists"


class OnError(str, Enum):
    """What happens to a write with bad records: it fails, or they are quarantined."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


class ChangeOrder(str, Enum):
    """How changes are applied: each as it arrives, or only if its ordering value is not less than that of the row."""

    ARRIVAL = "arrival"
    ORDERING_FIELD = "ordering_field"


class OverwriteScope(str, Enum):
    """The scope of an overwrite: the table, the partitions of its rows, or the rows that a filter matches."""

    TABLE = "table"
    PARTITIONS = "partitions"
    FILTER = "filter"


class Overwrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scope of an overwrite."""

    scope: OverwriteScope = OverwriteScope.TABLE
    """What is replaced."""
    where: str | None = None
    """Scope `filter`: the rows for which this condition is true."""


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Options of a write.

    `where`: deletes by filter. `partitions`: globs of partition paths, for delete_partition. `expected_version`: the
    version that the head must have at the commit. `writer_id`, `batch_id`: a batch of a stream commits once.
    `combine`: false requires that the rows of the write are stored as they were sent, without merging rows of one key.
    `sort_by`: the columns by which the rows of each file of a bulk_insert are ordered, ascending; by key if empty.
    `tombstone`: false leaves no tombstones of the deleted keys. `partition_done`: the partitions that the write changes
    are done with it. `accept_late`: late rows are written, whatever the watermark of the dataset says. `order`: that
    of a changelog; None for arrival. `metadata`: texts that are shown with its commit.
    """

    mode: SaveMode = SaveMode.APPEND
    overwrite: Overwrite | None = None
    where: str | None = None
    partitions: tuple[str, ...] = ()
    on_error: OnError = OnError.FAIL
    merge_schema: bool = False
    explicit_cast: bool = False
    drop_duplicates: bool = False
    combine: bool = True
    sort_by: tuple[str, ...] = ()
    tombstone: bool = True
    expected_version: int | None = None
    writer_id: str | None = None
    batch_id: int | None = None
    partition_done: bool = False
    accept_late: bool = False
    order: ChangeOrder | None = None
    metadata: dict[str, str] | None = None


DEFAULT_OPTIONS: Final = WriteOptions()
