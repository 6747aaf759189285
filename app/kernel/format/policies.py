"""Policies of a dataset: its compaction and clustering, its history, and actions after commits."""

from __future__ import annotations

from enum import Enum
from typing import Final

import msgspec

# Earlier versions of a dataset stay readable for a week, unless its history says otherwise.
HISTORY_SECONDS: Final = 7 * 86_400


class _Policy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class CompactionPolicy(_Policy, frozen=True, kw_only=True):
    """A file group is compacted once it reaches any of these limits; null is no limit.

    `logs`: the number of its logs or postponed writes. `log_ratio`: their bytes to those of its base files.
    `deleted_ratio`: rows that deletion vectors delete, to all rows of its base files. Ratios count once a quarter of
    `target_bytes` can be folded. `small_files`: the number of files of a bucket (of a partition, without a key) that
    are smaller than that. `seconds`: the age of its oldest log or postponed write.
    """

    logs: int | None = 16
    """The number of logs or postponed writes of a file group."""
    log_ratio: float | None = 1.0
    """The bytes of its logs to those of its base files, once a quarter of `target_bytes` can be folded."""
    deleted_ratio: float | None = 0.5
    """The rows that deletion vectors delete, to all rows of its base files, once a quarter of `target_bytes` can be
    folded.
    """
    small_files: int | None = 32
    """The number of files of a bucket (of a partition, without a key) that are smaller than a quarter of
    `target_bytes`.
    """
    seconds: int | None = None
    """The age of its oldest log or postponed write."""


class ChangelogPolicy(_Policy, frozen=True, kw_only=True):
    """Small changelog files of consecutive commits are merged: `small_files` or more, each `seconds` old or older."""

    small_files: int = 24
    """The number of small changelog files in a row from which on they are merged."""
    seconds: int = 10
    """The age from which on a changelog file is merged."""


class ClusterOrder(str, Enum):
    """The order of rows by several columns: lexicographic, or along a Z-order curve of all columns."""

    LINEAR = "linear"
    Z_ORDER = "z_order"


class ClusteringPolicy(_Policy, frozen=True, kw_only=True):
    """Keeps rows ordered by `columns`: a file group is clustered once it has this number of unordered bytes."""

    columns: list[str]
    """The columns to order by, 1 to 8; no lists, maps or structs."""
    order: ClusterOrder = ClusterOrder.LINEAR
    """How the order of several columns is combined; by default `linear`."""
    unclustered_bytes: int = 64 * 1024 * 1024
    """A file group is clustered once this number of its bytes is not in this order; without a record key a partition,
    all its groups together.
    """


class AnalysisPolicy(_Policy, frozen=True, kw_only=True):
    """The table is analyzed after its first commit, and again once it reaches one of these limits; null is no limit."""

    changed_ratio: float | None = 0.2
    """The changes of the feed since the last analysis, to the rows at that time: 0.2 is one change for five rows. At
    least 1,000 changes, so that a small table is not analyzed after every write. Not reached by a dataset without a
    feed; null for no such limit.
    """
    versions: int | None = None
    """The number of versions since the last analysis; null for no such limit."""


class HistoryPolicy(_Policy, frozen=True, kw_only=True):
    """Earlier versions stay readable while they are among the last `versions`, or were current in the last `seconds`.

    At least one of the two is set. With both, a version expires once neither keeps it.
    """

    versions: int | None = None
    """This number of latest versions is kept, 1 or more; null: no version is kept for its number."""
    seconds: int | None = None
    """A version is kept if it was the latest at any time within this number of seconds, 0 or more; null: no version is
    kept for its age.
    """


class TimelinePolicy(_Policy, frozen=True, kw_only=True):
    """The latest `instants` of the timeline stay in the catalogue; earlier ones are archived, and stay readable."""

    instants: int = 10_000
    """The number of instants that stay in the catalogue."""


class TagPeriod(str, Enum):
    """The periods at the end of which a version is tagged, in UTC."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


class TagPolicy(_Policy, frozen=True, kw_only=True):
    """After each period its last version is tagged with the period's name. The latest `keep` such tags are kept."""

    period: TagPeriod
    """The periods whose last versions are tagged."""
    keep: int | None = None
    """The number of such tags that are kept; null for all."""


class BatchTagPolicy(_Policy, frozen=True, kw_only=True):
    """A version that has a batch of a writer is tagged `batch-` and its number, in its commit. The latest `keep` such
    tags are kept.
    """

    keep: int = 100
    """The number of such tags that are kept, 1 to 10,000."""


class PartitionDonePolicy(_Policy, frozen=True, kw_only=True):
    """A partition is done once nothing was written to it for `idle_seconds`. With `marker`, a file marks it as done."""

    idle_seconds: int | None = None
    """The seconds for which a partition must not have been written, from 1 to 2,147,483,647; null: partitions must be
    marked done explicitly.
    """
    marker: bool = False
    """Whether a file `_SUCCESS` in the folder of a partition marks it, too."""


class MetastorePolicy(_Policy, frozen=True, kw_only=True):
    """The Hive table to which statistics of the partitions are reported. The operator configures the metastore.

    With `idle_seconds` nothing is reported until nothing was committed for that time, or until ten times that time
    after the first commit that was not reported.
    """

    database: str
    """The database of the metastore."""
    table: str
    """The table."""
    idle_seconds: int | None = None
    """The time without a commit after which the dataset is reported; null for at once."""


class TableServices(_Policy, frozen=True, kw_only=True):
    """The services that run for a dataset automatically; null disables a service."""

    compaction: CompactionPolicy | None = CompactionPolicy()
    """When file groups are compacted."""
    changelog: ChangelogPolicy | None = ChangelogPolicy()
    """When small changelog files are merged."""
    clustering: ClusteringPolicy | None = None
    """The order in which rows are kept."""
    history: HistoryPolicy | None = HistoryPolicy(seconds=HISTORY_SECONDS)
    """The history of versions that is kept: those of the last week, by default; null for all versions."""
    timeline: TimelinePolicy | None = TimelinePolicy()
    """The part of the timeline that stays in the catalogue; null for all of it."""
    tags: TagPolicy | None = None
    """Which versions are tagged at the end of a period."""
    batch_tags: BatchTagPolicy | None = None
    """Whether the versions of batches are tagged."""
    partition_done: PartitionDonePolicy | None = None
    """When a partition is done."""
    metastore: MetastorePolicy | None = None
    """The Hive table to which partitions are reported."""
    analysis: AnalysisPolicy | msgspec.UnsetType | None = msgspec.UNSET
    """When the distinct values of columns are counted; never, if it is left out."""


class UpdateTableServices(TableServices, frozen=True, kw_only=True):
    """Table services in place of those of a dataset. Without `history`, the dataset keeps the history that it has."""

    history: HistoryPolicy | msgspec.UnsetType | None = msgspec.UNSET  # type: ignore[assignment]
    """The history of versions that is kept; null for all versions; as before, if it is left out."""

    def instead_of(self, present: TableServices) -> TableServices:
        """The services of a dataset that has had others."""
        history = present.history if self.history is msgspec.UNSET else self.history
        others = {name: getattr(self, name) for name in TableServices.__struct_fields__}
        return TableServices(**others | {"history": history})
