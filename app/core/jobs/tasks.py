"""The requests of tasks: jobs other than writes, in a queue of their own beside the writes of their dataset."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.kernel.format.instant import Action
from app.kernel.format.policies import ClusterOrder, HistoryPolicy
from app.kernel.format.rows.read_order import ReadOrder
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess


class _Task(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="task"):
    @property
    def kind(self) -> str:
        """The kind of its job."""
        return str(self.__struct_config__.tag)


class ExportTask(_Task, frozen=True, kw_only=True, tag="export"):
    """Run `number` (from 1) of an export: its range is in the run's own row. `access`: that of the export."""

    export_id: str
    number: int
    access: RowAccess = EVERYTHING


class VerifyTask(_Task, frozen=True, kw_only=True, tag="verify"):
    """Folds the feed up to a version (None: the head when it runs) and compares it with the table."""

    version: int | None = None


class CompactionTask(_Task, frozen=True, kw_only=True, tag="compaction"):
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    `partitions`: globs of the partitions to compact; None for all. `file_groups`: groups to compact however little they
    have to fold; None for all groups that the policy selects.
    """

    partitions: tuple[str, ...] | None = None
    file_groups: tuple[str, ...] | None = None


class ClusteringTask(_Task, frozen=True, kw_only=True, tag="clustering"):
    """Orders the rows of file groups by some columns, so that filters on these read few files and row groups.

    `partitions`, `file_groups`: as in a compaction.
    """

    columns: tuple[str, ...]
    order: ClusterOrder = ClusterOrder.LINEAR
    partitions: tuple[str, ...] | None = None
    file_groups: tuple[str, ...] | None = None


class CleanTask(_Task, frozen=True, kw_only=True, tag="clean"):
    """Removes versions that the history no longer keeps, archives old instants, and deletes files without references.

    `history`: replaces the history of the dataset for this task.
    """

    history: HistoryPolicy | None = None


class NameVersionTask(_Task, frozen=True, kw_only=True):
    """Names a version (None: the head when it runs). The name keeps the version, and reads and restores can use it.

    `keep_seconds`: the lifetime of the name; None for no limit.
    """

    name: str
    version: int | None = None
    keep_seconds: int | None = None


class SavepointTask(NameVersionTask, frozen=True, kw_only=True, tag="savepoint"):
    """A name that also keeps the feed since the version."""


class TagTask(NameVersionTask, frozen=True, kw_only=True, tag="tag"):
    """A name for readers."""


class ReadQuery(str, Enum):
    """What a read job reads: the table, only its base files, or the last state of the rows that changed in a range."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class Disposition(str, Enum):
    """Where the result of a read job is: in one response, or in files that the response links to."""

    INLINE = "inline"
    FILES = "files"


class ReadTask(_Task, frozen=True, kw_only=True, tag="read"):
    """Reads rows of a version, or those that changed in (`begin`, `end`], to files.

    `version`: determined when the job was accepted; of an incremental read, `end`. `format`: a name of `ExportFormat`,
    or `json`. `meta`: whether rows have the meta columns. `corrected_since`: whether rows are marked that later changes
    have corrected. `access`: what its requester may see.
    """

    query: ReadQuery
    version: int
    format: str
    disposition: Disposition
    begin: int | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    order_by: tuple[ReadOrder, ...] = ()
    limit: int | None = None
    meta: bool = False
    corrected_since: bool = False
    access: RowAccess = EVERYTHING

    @property
    def with_sources(self) -> bool:
        """Whether rows need what only files of the table have: the version and the change that gave them their
        values.
        """
        return self.meta or self.corrected_since


class ComparisonTask(_Task, frozen=True, kw_only=True, tag="comparison"):
    """Counts the rows that differ between two versions, and reports how files and schema differ."""

    from_version: int
    to_version: int


TaskRequest = (
    ExportTask
    | VerifyTask
    | CompactionTask
    | ClusteringTask
    | CleanTask
    | SavepointTask
    | TagTask
    | ReadTask
    | ComparisonTask
)

_ACTIONS: Final = {
    CompactionTask: Action.COMPACTION,
    ClusteringTask: Action.CLUSTERING,
    CleanTask: Action.CLEAN,
    SavepointTask: Action.SAVEPOINT,
    TagTask: Action.TAG,
}


def action_of(task: TaskRequest) -> Action | None:
    """The action of the task's instant; None for a task that only reads."""
    return _ACTIONS.get(type(task))


def is_table_service(task: TaskRequest) -> bool:
    """Whether the task changes files of the dataset: of such tasks one runs at a time."""
    return isinstance(task, CompactionTask | ClusteringTask | CleanTask)


class VersionKind(str, Enum):
    """The kind of a name: a savepoint, which also keeps the feed since the version, or a tag for readers."""

    SAVEPOINT = "savepoint"
    TAG = "tag"


class NamedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with a name, readable as long as the name exists."""

    name: Annotated[str, msgspec.Meta(examples=["before-import"])]
    """The name."""
    kind: VersionKind
    """Whether it is a savepoint or a tag."""
    version: int
    """The version."""
    automatic: bool
    """Whether `services.tags` or `services.batch_tags` of the dataset made it."""
    created_at: datetime
    """When the version got the name."""
    expires_at: datetime | None
    """When the name expires; null if it does not."""
