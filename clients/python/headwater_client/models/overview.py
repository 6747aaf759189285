"""Values of overview. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class ByteSums(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of the files of a table."""

    base: int
    """Of base files."""
    logs: int
    """Of logs."""
    postponed: int
    """Of postponed writes."""
    tombstones: int
    """Of tombstone files."""
    deletion_vectors: int
    """Of deletion vectors."""
    indexes: int
    """Of key indexes."""
    changelog: int
    """Of the files of the feed."""
    written: int
    """The bytes that all commits so far have written to data files."""
    write_amplification: float | None
    """The ratio of `written` to the bytes of live data files; null without live files."""


class ChangelogSums(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are kept."""

    changes: int
    """Their number."""
    earliest_offset: int
    """The offset of the first one."""
    next_offset: int
    """The offset after the last one."""
    files: int
    """The number of files that contain them."""


class ColumnStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and nulls of a column in a file."""

    minimum: Any = None
    """The least value, as JSON; null where unknown or too long to keep."""
    maximum: Any = None
    """The greatest value, as JSON; null where unknown or too long to keep."""
    null_count: int | None = None
    """How many nulls there are; null where unknown."""


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and nulls of a column in all base files, deleted rows included; and its distinct values."""

    name: str
    """Its name."""
    minimum: Any
    """The least value, as JSON; null where not known of each file."""
    maximum: Any
    """The greatest value, as JSON; null where not known of each file."""
    null_count: int | None
    """How many nulls there are; null where not known of each file."""
    distinct_count: int | None = None
    """An estimate of the number of distinct values that readers saw at `analyzed_version`; nulls are no value."""
    analyzed_version: int | None = None
    """The version at which the values were counted; null if the column has not been analyzed."""


class ConsumerSums(msgspec.Struct, frozen=True, kw_only=True):
    """The consumers of the feed."""

    count: int
    """Their number."""
    lag: int | None
    """The number of changes that the consumer farthest behind has not committed; null without consumers."""


class DatasetOverview(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in numbers. For a key that sees a part of it, all but the first six members are null."""

    dataset: str
    """Its name."""
    id: str
    """Its id."""
    is_view: bool
    """Whether it is the dataset of a view."""
    labels: dict[str, str]
    """Its labels."""
    version: int
    """Its version."""
    committed_at: datetime | None
    """When that was committed; null before the first commit."""
    problems: tuple[str, ...] | None
    """What is wrong with it; `[]` for a healthy dataset."""
    rows: int | None
    """Its rows, as of `sampled_at`. Where there are `logs`, these may add, change or delete rows."""
    deleted_rows: int | None
    """Rows in its files that deletion vectors delete."""
    files: int | None
    """Its data files."""
    logs: int | None
    """Those of them that are logs, which readers merge in."""
    size_bytes: int | None
    """The bytes of its data files."""
    sampled_at: datetime | None
    """When these numbers were counted: about a minute after the last commit; null before the first sample."""
    writes: int | None
    """Its writes in the last 24 hours, the current one included."""
    rows_in: int | None
    """The rows that these have inserted, updated or deleted."""
    consumers: int | None
    """The consumers of its feed."""
    lag: int | None
    """The changes that the consumer farthest behind has not committed; null without consumers."""
    farthest_consumer: str | None
    """The name of that consumer; null if none lacks a change."""
    quarantined: int | None
    """Its records in quarantine that were not redriven."""


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A data file at a version."""

    name: str
    """Its name, which the column `_hw_file_name` of its rows shows."""
    kind: str
    """The kind of its rows: base, log, or postponed; or tombstone, whose rows are deleted keys, not rows of the table.
    """
    partition: str
    """The path of its partition; empty for a table without partitions."""
    bucket: int
    """Its bucket."""
    file_group: str
    """The id of its file group."""
    size_bytes: int
    """Its size."""
    rows: int
    """The number of its stored rows, deleted ones included."""
    live_rows: int
    """The number of its rows that no deletion vector deletes."""
    checksum: str
    """The checksum of its bytes."""
    schema_id: int
    """The schema that it was written with."""
    added_version: int | None
    """The version that added the file in this state."""
    written_version: int | None
    """The version that wrote it."""
    index: str | None
    """The kind of its key index; null for none."""
    clustered: str | None
    """The order of its rows, if a clustering wrote it; null otherwise."""
    statistics: dict[str, ColumnStatistics] | None
    """The statistics of its columns, by name; null unless `statistics` is requested."""
    read: bool | None
    """Whether a read with the filter `where` opens the file; null without `where`."""


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a version by path; all pages of one list are of the same version."""

    items: tuple[File, ...]
    """The files of this page."""
    version: int
    """The version of all pages."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class FileSums(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of data files of a table."""

    base: int
    """Base files."""
    logs: int
    """Logs."""
    postponed: int
    """Postponed writes."""
    tombstones: int
    """Tombstone files."""
    small: int
    """Base files that are much smaller than `target_bytes`."""
    sizes: tuple[SizeClass, ...]
    """Base files by size."""


class HourNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of an hour."""

    hour: datetime
    """When it began."""
    writes: int
    """The writes in it."""
    rows_in: int
    """The rows that these have inserted, updated or deleted."""


class JobSums(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the dataset that have not ended."""

    queued: int
    """Queued jobs."""
    running: int
    """Running jobs."""


class OverviewHours(msgspec.Struct, frozen=True, kw_only=True):
    """Writes by hour."""

    items: tuple[HourNumbers, ...]
    """The hours, the oldest first, the current one last."""


class OverviewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets in numbers, by name."""

    items: tuple[DatasetOverview, ...]
    """The datasets of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class RowSums(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows of a table."""

    live: int
    """Rows of base files that no deletion vector deletes; the rows that readers see if `exact`."""
    exact: bool
    """Whether there are no logs."""
    deleted: int
    """Rows of base files that deletion vectors delete."""
    deleted_ratio: float
    """The ratio of `deleted` to all rows of base files."""
    in_logs: int
    """The number of rows in logs."""
    postponed: int
    """Rows in postponed writes."""


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When each table service last succeeded, also without work to do; null if it never has."""

    compaction: datetime | None
    """The last compaction."""
    clustering: datetime | None
    """The last clustering."""
    clean: datetime | None
    """The last clean."""


class SizeClass(msgspec.Struct, frozen=True, kw_only=True):
    """The base files of a range of sizes."""

    below: int | None
    """The files have fewer bytes, and at least the bound of the previous class; null for no bound."""
    files: int
    """Their number."""
    size_bytes: int
    """Their size in bytes."""


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of a table."""

    version: int
    """The version of the statistics."""
    committed_at: datetime | None
    """When it was committed; null before the first commit."""
    rows: RowSums
    """Its rows."""
    files: FileSums
    """Its files."""
    partitions: int
    """The number of partitions with files."""
    file_groups: int
    """The number of file groups with files."""
    size_bytes: ByteSums
    """Its bytes."""
    changelog: ChangelogSums
    """The changes that are kept."""
    versions: VersionSums
    """Its versions."""
    served_at: ServiceTimes
    """When table services last succeeded."""
    consumers: ConsumerSums
    """The consumers of its feed."""
    jobs: JobSums
    """Its jobs that have not ended."""
    columns: tuple[ColumnSummary, ...]
    """Bounds and null counts of the requested columns."""


class StoredDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset with the bytes of its files."""

    tenant: str
    """The name of its tenant."""
    dataset: str
    """Its name."""
    dataset_id: str
    """Its id."""
    stored_bytes: int
    """The bytes of all its files, those of earlier versions, of its feed and of its quarantine included: the largest
    sample of the day.
    """
    size_bytes: int | None
    """The bytes of the data files of its version; null before the first sample."""
    deleted_at: datetime | None
    """When it was deleted: its files are deleted later, or by `create_reap`. Null for one that exists."""


class StoredDatasets(msgspec.Struct, frozen=True, kw_only=True):
    """The datasets of all tenants that store most."""

    items: tuple[StoredDataset, ...]
    """The datasets, the largest first."""
    sums: StoredSums
    """What all tenants together store."""


class StoredSums(msgspec.Struct, frozen=True, kw_only=True):
    """What all tenants together store, in bytes."""

    dataset_bytes: int
    """All files of datasets, as of the last samples: those of earlier versions, of feeds, of exports, of results and of
    the quarantine included.
    """
    quarantine_bytes: int
    """Of these, the files of the quarantine."""
    rendered_bytes: int
    """Files that were rendered for readers of open tables."""
    database_bytes: int | None
    """The database of the service; null if the service may not read it."""
    files_on_disk: bool
    """Whether files are on a disk, not in a bucket."""
    database_on_host: bool
    """Whether the database is on the machine of the process that responds."""


class VersionSums(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a table."""

    earliest: int
    """The first version that is kept, apart from those with a name."""
    latest: int
    """The latest version."""
    commits: dict[str, int]
    """The number of commits so far, by action."""
