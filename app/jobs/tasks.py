"""What jobs do that are no writes: they run beside the writes of their dataset, in a queue of their own."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.format.instant import Action
from app.format.policies import ClusterOrder, HistoryPolicy
from app.format.rows.read_order import ReadOrder


class _Task(msgspec.Struct, frozen=True, kw_only=True, tag_field="task"):
    @property
    def kind(self) -> str:
        """The kind of its job."""
        return str(self.__struct_config__.tag)


class ExportTask(_Task, frozen=True, kw_only=True, tag="export"):
    """Run `number` (from 1) of an export: its range is in the run's own row."""

    export_id: str
    number: int


class VerifyTask(_Task, frozen=True, kw_only=True, tag="verify"):
    """Folds the feed up to a version (None: the head when it runs) and compares it with the table."""

    version: int | None = None


class CompactionTask(_Task, frozen=True, kw_only=True, tag="compaction"):
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    `partitions`: globs of the partitions to look at, None for all. `file_groups`: those to compact whatever they hold
    beside their base files, None for all that are worth it.
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

    `history`: in place of the dataset's own, for this once.
    """

    history: HistoryPolicy | None = None


class NameVersionTask(_Task, frozen=True, kw_only=True):
    """Gives a version (None: the head when it runs) a name, by which it is read and restored, and which keeps it.

    `keep_seconds`: until when, None for ever.
    """

    name: str
    version: int | None = None
    keep_seconds: int | None = None


class SavepointTask(NameVersionTask, frozen=True, kw_only=True, tag="savepoint"):
    """A name that keeps the feed from there on, too."""


class TagTask(NameVersionTask, frozen=True, kw_only=True, tag="tag"):
    """A name for readers."""


class ReadQuery(str, Enum):
    """What a read job sees: the table, only its base files, or the last state of the rows that changed in a range."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class Disposition(str, Enum):
    """Where the result of a read job is: in the answer to the request for it, or in files that the answer links to."""

    INLINE = "inline"
    FILES = "files"


class ReadTask(_Task, frozen=True, kw_only=True, tag="read"):
    """Reads rows of a version, or those that changed in (`begin`, `end`], to files.

    `version`: fixed when the job was accepted; of an incremental read, `end`. `format`: a name of `ExportFormat`, or
    `json`.
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


class ComparisonTask(_Task, frozen=True, kw_only=True, tag="comparison"):
    """Counts the rows that differ between two versions, and says how files and schema differ."""

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
    """What the task's instant does to the dataset; None for one that only reads."""
    return _ACTIONS.get(type(task))


def is_table_service(task: TaskRequest) -> bool:
    """Whether the task changes files of the dataset: of such tasks one runs at a time."""
    return isinstance(task, CompactionTask | ClusteringTask | CleanTask)


class VersionKind(str, Enum):
    """What a named version is for: a savepoint to go back to, which keeps the feed since, or a tag to read."""

    SAVEPOINT = "savepoint"
    TAG = "tag"


class NamedVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with a name, readable as long as it has it."""

    name: Annotated[str, msgspec.Meta(examples=["before-import"])]
    """The name."""
    kind: VersionKind
    """Whether it is a savepoint or a tag."""
    version: int
    """The version."""
    automatic: bool
    """Whether `services.tags` of the dataset made it."""
    created_at: datetime
    """When the version got the name."""
    expires_at: datetime | None
    """When the name expires; null if it does not."""
