"""Options of a write, beside its operation and its rows."""

from __future__ import annotations

from enum import Enum

import msgspec


class SaveMode(str, Enum):
    """What a write does about the data that are there already."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    IGNORE = "ignore"
    ERROR_IF_EXISTS = "error_if_exists"


class OnError(str, Enum):
    """What becomes of a write with bad records: it fails, or they are set aside."""

    FAIL = "fail"
    QUARANTINE = "quarantine"


class OverwriteScope(str, Enum):
    """What an overwrite replaces: the table, the partitions that its rows are in, or the rows a filter matches."""

    TABLE = "table"
    PARTITIONS = "partitions"
    FILTER = "filter"


class Overwrite(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scope of an overwrite; `where` belongs to scope `filter`."""

    scope: OverwriteScope = OverwriteScope.TABLE
    where: str | None = None


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a write.

    `where`: deletes by filter. `partitions`: globs of partition paths, for delete_partition. `expected_version`: the
    version that the head must have at the commit. `writer_id`, `batch_id`: a batch of a stream commits once.
    """

    mode: SaveMode = SaveMode.APPEND
    overwrite: Overwrite | None = None
    where: str | None = None
    partitions: tuple[str, ...] = ()
    on_error: OnError = OnError.FAIL
    merge_schema: bool = False
    explicit_cast: bool = False
    drop_duplicates: bool = False
    expected_version: int | None = None
    writer_id: str | None = None
    batch_id: int | None = None
