"""Values of overview. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class ByteSums(msgspec.Struct, frozen=True, kw_only=True):
    """The bytes of a table."""

    base: int
    """Of base files."""
    logs: int
    """Of logs."""
    postponed: int
    """Of postponed writes."""
    deletion_vectors: int
    """Of deletion vectors."""
    indexes: int
    """Of key indexes."""
    changelog: int
    """Of the files of the feed."""
    written: int
    """Written to data files by all commits so far."""
    write_amplification: float | None
    """`written` to the bytes of live data files; null without any."""


class ChangelogSums(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that are kept."""

    changes: int
    """How many there are."""
    earliest_offset: int
    """The first one."""
    next_offset: int
    """The offset after the last one."""
    files: int
    """The files that hold them."""


class ColumnStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and nulls of a column in a file."""

    minimum: Any = None
    """The least value, as JSON; null where unknown or too long to keep."""
    maximum: Any = None
    """The greatest value, as JSON; null where unknown or too long to keep."""
    null_count: int | None = None
    """How many nulls there are; null where unknown."""


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and nulls of a column in all base files, deleted rows included."""

    name: str
    """Its name."""
    minimum: Any
    """The least value, as JSON; null where not known of each file."""
    maximum: Any
    """The greatest value, as JSON; null where not known of each file."""
    null_count: int | None
    """How many nulls there are; null where not known of each file."""


class ConsumerSums(msgspec.Struct, frozen=True, kw_only=True):
    """The consumers of the feed."""

    count: int
    """How many there are."""
    lag: int | None
    """The changes before the one that is farthest behind; null without consumers."""


class File(msgspec.Struct, frozen=True, kw_only=True):
    """A data file at a version."""

    name: str
    """Its name, which the column `_hw_file_name` of its rows shows."""
    kind: str
    """What it holds."""
    partition: str
    """The path of its partition; empty for a table without partitions."""
    bucket: int
    """Its bucket."""
    file_group: str
    """The id of its file group."""
    size_bytes: int
    """Its size."""
    rows: int
    """Its rows as they are stored."""
    live_rows: int
    """Its rows that no deletion vector has taken out."""
    checksum: str
    """The checksum of its bytes."""
    schema_id: int
    """The schema that it was written with."""
    added_version: int | None
    """The version since which the file is as it is here."""
    written_version: int | None
    """The version that wrote it."""
    index: str | None
    """The kind of its key index; null for none."""
    clustered: str | None
    """The order in which a clustering has put its rows; null for none."""
    statistics: dict[str, ColumnStatistics] | None
    """What is known of its columns, by name; null unless `statistics` is requested."""


class FilePage(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a version, in the order of their paths; every page of one walk is of the same version."""

    items: tuple[File, ...]
    """The files of this page."""
    version: int
    """The version of all pages."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class FileSums(msgspec.Struct, frozen=True, kw_only=True):
    """The data files of a table."""

    base: int
    """Base files."""
    logs: int
    """Logs."""
    postponed: int
    """Postponed writes."""
    small: int
    """Base files that are far smaller than `target_bytes`."""
    sizes: tuple[SizeClass, ...]
    """Base files by size."""


class JobSums(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of the dataset that have not ended."""

    queued: int
    """Those that wait."""
    running: int
    """Those that run."""


class RowSums(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table."""

    live: int
    """Rows of base files that no deletion vector has taken out; what readers see if `exact`."""
    exact: bool
    """Whether there are no logs."""
    deleted: int
    """Rows of base files that deletion vectors have taken out."""
    deleted_ratio: float
    """These to all rows of base files."""
    in_logs: int
    """Rows in logs."""
    postponed: int
    """Rows in postponed writes."""


class ServiceTimes(msgspec.Struct, frozen=True, kw_only=True):
    """When each table service last ended, also where it found nothing to do; null for never."""

    compaction: datetime | None
    """The last compaction."""
    clustering: datetime | None
    """The last clustering."""
    clean: datetime | None
    """The last clean."""


class SizeClass(msgspec.Struct, frozen=True, kw_only=True):
    """The base files of a range of sizes."""

    below: int | None
    """They have fewer bytes, and no fewer than the bound of the class before; null for no bound."""
    files: int
    """How many there are."""
    size_bytes: int
    """Their size."""


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """A table in numbers."""

    version: int
    """The version that the numbers are of."""
    committed_at: datetime | None
    """When it was committed; null before the first commit."""
    rows: RowSums
    """Its rows."""
    files: FileSums
    """Its files."""
    partitions: int
    """How many partitions have files."""
    file_groups: int
    """How many file groups have files."""
    size_bytes: ByteSums
    """Its bytes."""
    changelog: ChangelogSums
    """The changes that are kept."""
    versions: VersionSums
    """Its versions."""
    served_at: ServiceTimes
    """When table services last ended."""
    consumers: ConsumerSums
    """The consumers of its feed."""
    jobs: JobSums
    """Its jobs that have not ended."""
    columns: tuple[ColumnSummary, ...]
    """Bounds and nulls of the columns that were requested."""


class VersionSums(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a table."""

    earliest: int
    """The first version that is kept, apart from those with a name."""
    latest: int
    """The latest version."""
    commits: dict[str, int]
    """How many commits there were so far, by action."""
