"""What a dataset has done by itself: how it is kept in shape, how far back it is kept, what happens after commits."""

from __future__ import annotations

from enum import Enum

import msgspec


class _Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class CompactionPolicy(_Policy, frozen=True, kw_only=True):
    """A file group is compacted once any of these is reached; a bound that is null never is.

    `logs`: how many logs or postponed writes it has. `log_ratio`: their bytes to those of its base files.
    `deleted_ratio`: rows that deletion vectors took out, to all rows of its base files. Ratios count once there are a
    quarter of `target_bytes` to fold. `small_files`: how many files of a bucket (of a partition, without a key) are
    smaller than that. `seconds`: the age of its oldest log or postponed write.
    """

    logs: int | None = 16
    """How many logs or postponed writes a file group has."""
    log_ratio: float | None = 1.0
    """The bytes of its logs to those of its base files, once there are a quarter of `target_bytes` to fold."""
    deleted_ratio: float | None = 0.5
    """The rows that deletion vectors took out to all rows of its base files, once there are a quarter of
    `target_bytes` to fold.
    """
    small_files: int | None = 32
    """How many files of a bucket (of a partition, without a key) are smaller than a quarter of `target_bytes`."""
    seconds: int | None = None
    """The age of its oldest log or postponed write."""


class ClusterOrder(str, Enum):
    """How rows are ordered by several columns: by the first, then the second …, or along a Z-order curve of all."""

    LINEAR = "linear"
    Z_ORDER = "z_order"


class ClusteringPolicy(_Policy, frozen=True, kw_only=True):
    """Rows are kept ordered by `columns`: once a file group has so many bytes that are not yet, it is clustered."""

    columns: list[str]
    """The columns to order by."""
    order: ClusterOrder = ClusterOrder.LINEAR
    """How several columns make one order."""
    unclustered_bytes: int = 64 * 1024 * 1024
    """How many bytes of a file group are not in order before it is clustered."""


class HistoryPolicy(_Policy, frozen=True, kw_only=True):
    """Earlier versions stay readable while they are among the last `versions`, or were the latest `seconds` ago.

    One of the two is set. With both, a version goes once neither keeps it.
    """

    versions: int | None = None
    """The last so many versions stay readable; null for no limit of number."""
    seconds: int | None = None
    """Versions that were the latest so long ago stay readable; null for no limit of age."""


class TimelinePolicy(_Policy, frozen=True, kw_only=True):
    """The latest `instants` of the timeline stay in the catalogue; earlier ones are archived, and stay readable."""

    instants: int = 10_000
    """How many stay in the catalogue."""


class TagPeriod(str, Enum):
    """The stretches of time at the end of which a version is tagged, in UTC."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class TagPolicy(_Policy, frozen=True, kw_only=True):
    """After each period its last version is tagged with the period's name; the latest `keep` such tags are kept."""

    period: TagPeriod
    """The periods whose last versions are tagged."""
    keep: int | None = None
    """How many such tags are kept; null for all."""


class PartitionDonePolicy(_Policy, frozen=True, kw_only=True):
    """A partition is done once nothing was written to it for `idle_seconds`; `marker`: then a file says so."""

    idle_seconds: int | None = None
    """How long nothing is written to a partition before it is done; null: never by itself."""
    marker: bool = False
    """Whether a file in the partition says that it is done."""


class MetastorePolicy(_Policy, frozen=True, kw_only=True):
    """The Hive table that statistics of the partitions are reported to; the operator says which metastore."""

    database: str
    """The database of the metastore."""
    table: str
    """The table."""


class TableServices(_Policy, frozen=True, kw_only=True):
    """What is done for a dataset without being asked for; null turns a service off."""

    compaction: CompactionPolicy | None = CompactionPolicy()
    """When file groups are compacted."""
    clustering: ClusteringPolicy | None = None
    """In which order rows are kept."""
    history: HistoryPolicy | None = None
    """How far back versions are kept; null for all."""
    timeline: TimelinePolicy | None = TimelinePolicy()
    """How much of the timeline stays in the catalogue; null for all of it."""
    tags: TagPolicy | None = None
    """Which versions are tagged."""
    partition_done: PartitionDonePolicy | None = None
    """When a partition is done."""
    metastore: MetastorePolicy | None = None
    """Where partitions are reported to."""
