"""Values of partitions. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class EndPartitions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Partitions that receive no more data."""

    partitions: tuple[str, ...]
    """Their paths."""


class MetastoreReport(msgspec.Struct, frozen=True, kw_only=True):
    """The Hive table of a dataset, and the last report to it."""

    database: str
    """The database of the Hive table."""
    table: str
    """The name of the Hive table."""
    version: int | None
    """The version that was reported last; null before the first report."""
    head: int
    """The latest version of the dataset."""
    reported_at: datetime | None
    """When that version was reported; null before the first report."""
    error: str | None
    """Why the last report failed; null if it did not."""
    failures: int
    """How many reports have failed in a row."""
    retry_at: datetime | None
    """When the next report is tried after a failure; null if none failed."""


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition at a version."""

    path: str
    """Its path; empty for a table without partitions."""
    values: dict[str, str | None]
    """The values in its path, by name; null also for a value that is too long for a path."""
    base_files: int
    """The number of its base files."""
    logs: int
    """The number of its logs."""
    postponed: int
    """The number of its postponed writes."""
    tombstone_files: int
    """The number of its tombstone files."""
    rows: int
    """The number of live rows in base files; the number of rows that readers see if `exact`."""
    exact: bool
    """Whether there are no logs, which may add, change or delete rows."""
    log_rows: int
    """The number of rows in logs."""
    postponed_rows: int
    """The number of rows in postponed writes, which are visible after a compaction."""
    size_bytes: int
    """The size of its files."""
    written_version: int
    """The version of the last commit that changed its files, table services included."""
    written_at: datetime
    """The time of that commit."""
    changed_version: int | None
    """The version of the last commit that changed its rows; null if partitions are not marked."""
    changed_at: datetime | None
    """The time of that commit; null if partitions are not marked."""
    done_version: int | None
    """The version that has all of its data; null if it is not done."""
    done_at: datetime | None
    """When it was done; null if it is not done."""


class PartitionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a partition: it is done, or open again."""

    number: int
    """Its number, from 0, without gaps."""
    kind: str
    """What happened."""
    partition: str
    """The path of the partition."""
    version: int
    """The version that has all of its data, or the version that added data to it after that."""
    reason: str | None
    """Why it is done; null for one that was reopened."""
    at: datetime
    """When the event was recorded."""


class PartitionEventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events of partitions in order."""

    events: tuple[PartitionEvent, ...]
    """The events of this page."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many events follow the page."""


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, and whether it is done."""

    path: str
    """Its path."""
    changed_version: int
    """The last version whose write changed it."""
    changed_at: datetime
    """When that was committed."""
    done_version: int | None
    """The version that has all of its data; null while it is open."""
    done_at: datetime | None
    """When it was done; null while it is open."""


class PartitionMarkList(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions in the order of the request."""

    items: tuple[PartitionMark, ...]
    """The partitions."""


class PartitionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions of a version by path; all pages of one list are of the same version."""

    items: tuple[Partition, ...]
    """The partitions of this page."""
    version: int
    """The version of all pages."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
