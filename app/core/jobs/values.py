"""Jobs: their requests, states and claims."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from app.core.jobs.tasks import ExportTask, ReadTask, TaskRequest, action_of, is_table_service
from app.kernel.commit.write_options import SaveMode, WriteOptions
from app.kernel.format.errors import (
    AttemptsExhausted,
    CorruptFile,
    Fault,
    HeadwaterError,
    StorageFull,
    StorageUnavailable,
    Unavailable,
)
from app.kernel.format.instant import Action, RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.sql.conditions.row_access import RowAccess

SERVICE_MADE: Final = frozenset(
    error.code
    for error in (
        HeadwaterError,
        StorageFull,
        StorageUnavailable,
        Unavailable,
        AttemptsExhausted,
        CorruptFile,
    )
)
"""Codes of failures that say nothing about the request: sending it again is right, and makes a new job."""


class JobKind(str, Enum):
    """What a job does."""

    WRITE = "write"
    COMPACTION = "compaction"
    REFRESH = "refresh"
    EXPORT = "export"
    VERIFY = "verify"
    CLUSTERING = "clustering"
    CLEAN = "clean"
    SAVEPOINT = "savepoint"
    TAG = "tag"
    READ = "read"
    COMPARISON = "comparison"
    RESTORE = "restore"
    ROLLBACK = "rollback"
    SOURCE_ROUND = "source_round"


DERIVED_WRITES: Final = frozenset({JobKind.REFRESH, JobKind.RESTORE, JobKind.ROLLBACK})
"""Writes whose rows are made when they run, by Spark jobs that may take long. Each has a commit of its own."""


class WriteProcess(str, Enum):
    """The process of a worker in which a write runs. The last two have a JVM of their own."""

    WORKER = "worker"
    """Writes whose rows were sent."""
    DERIVED = "derived"
    """`DERIVED_WRITES`, and rounds whose rows SQL makes."""
    ISOLATED = "isolated"
    """Of these, one that ran when its process was killed: it runs with no other."""


DEATHS_MAX: Final = 2
"""The number of processes that a job may have killed before it fails."""


def process_of(kind: JobKind, deaths: int, *, transforms: bool = False) -> WriteProcess:
    """Where a write runs. `deaths`: how often its process was killed while it ran. `transforms`: as of its round."""
    if kind not in DERIVED_WRITES and not transforms:
        return WriteProcess.WORKER
    return WriteProcess.ISOLATED if deaths else WriteProcess.DERIVED


class WorkerEnd(str, Enum):
    """How the process ended that held some jobs."""

    STOPPED = "stopped"
    """In order: the attempts do not count."""
    DIED = "died"
    """With its machine, or for reasons that say nothing about its jobs: the attempts count."""
    KILLED = "killed"
    """By one of its jobs, it seems: the death counts, the attempts do not."""


TIME_LIMITED: Final = frozenset(
    {
        JobKind.REFRESH,
        JobKind.RESTORE,
        JobKind.ROLLBACK,
        JobKind.READ,
        JobKind.EXPORT,
        JobKind.VERIFY,
        JobKind.COMPARISON,
    }
)
"""The kinds of jobs whose duration follows from what they read, and not from what their request contains."""


class JobQueue(str, Enum):
    """The queue of a job: writes of a dataset run one group after another, tasks beside them."""

    WRITES = "writes"
    TASKS = "tasks"


class JobState(str, Enum):
    """The state of a job; the last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class JobFilter(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of a tenant's jobs; None selects any."""

    dataset_id: str | None = None
    kinds: tuple[JobKind, ...] | None = None
    states: tuple[JobState, ...] | None = None
    datasets: tuple[str, ...] | None = None
    """Patterns of the names of datasets."""

    @property
    def unfinished(self) -> bool:
        """Whether the filter selects only jobs that have not ended."""
        return bool(self.states) and not any(state.final for state in self.states or ())


class Progress(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a running job is."""

    stage: Annotated[str, msgspec.Meta(examples=["queued"])]
    """What it does now."""
    done: int = 0
    """The tasks of the stage that are done."""
    total: int = 0
    """All tasks of the stage."""
    waiting_for: str | None = None
    """What a queued job waits for since its last attempt: `storage`, `space` (in the storage), `database`, or
    `sources` (other rounds that read from elsewhere); null for its turn only. It is tried again by itself, after a
    minute at most.
    """


class RestoreTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to restore: `version`, or the one before the newest `instants` commits of writes."""

    version: int | None = None
    instants: int | None = None


class SourceRound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A round of a source. `position`: that of the source after it, once it is known.

    `transforms`: SQL makes its rows from what is read.
    """

    source_id: str
    source: str
    """The name of the source."""
    position: dict[str, Any] | None = None
    transforms: bool = False


class InputRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes [since, until) of a dataset that a refresh of a view takes in."""

    dataset_id: str
    dataset: str
    """The name of the dataset."""
    since: int
    until: int


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write as it is stored with its job: `staged` if the API has decoded the rows, else `raw`.

    The content of staged rows has a column of its own beside the request, which only the claim of the job reads.
    `schema_id`: the schema by which the staged rows were validated. `quarantined`: the bad records that were found
    then. `derived`: a view computes the rows from its inputs when the write runs. `restores`: the rows are those of an
    earlier version. `by_value`: the rows are changes to rows without a key. `round`: the rows are read from a source
    when the write runs. `creates`: the write has registered its dataset. `inputs`: what a refresh takes in.
    """

    operation: Operation
    options: WriteOptions = WriteOptions()
    schema_id: int = 1
    staged: tuple[StagedFile, ...] = ()
    quarantined: tuple[QuarantineFile, ...] = ()
    raw: RawInput | None = None
    derived: bool = False
    restores: RestoreTarget | None = None
    by_value: bool = False
    round: SourceRound | None = None
    creates: bool = False
    inputs: tuple[InputRange, ...] = ()

    @property
    def content(self) -> bytes | None:
        """The content of the staged rows, if it is kept with the job: those that the API stages are one file."""
        return next((file.content for file in self.staged if file.content is not None), None)

    def with_content(self, content: bytes | None) -> WriteRequest:
        """The request with this content of its staged rows."""
        return replace(self, staged=tuple(replace(file, content=content) for file in self.staged))

    @property
    def kind(self) -> JobKind:
        """The kind of the job, as users see it."""
        if self.derived:
            return JobKind.REFRESH
        if self.round is not None:
            return JobKind.SOURCE_ROUND
        if self.restores is not None:
            return JobKind.RESTORE if self.restores.version is not None else JobKind.ROLLBACK
        return JobKind.WRITE

    @property
    def transforms(self) -> bool:
        """Whether SQL makes its rows from those that a source reads."""
        return self.round is not None and self.round.transforms

    @property
    def exclusive(self) -> bool:
        """Whether the write must not share a commit, because it reads more of the table than its own keys."""
        options = self.options
        return (
            self.derived
            or self.round is not None
            or self.by_value
            or self.operation in _TABLE_WIDE
            or options.mode in (SaveMode.IGNORE, SaveMode.ERROR_IF_EXISTS)
            or options.where is not None
            or options.merge_schema
            or options.expected_version is not None
            or options.partition_done
        )


_TABLE_WIDE = (Operation.OVERWRITE, Operation.SNAPSHOT, Operation.DELETE_PARTITION)

JobRequest = WriteRequest | TaskRequest


_ACTIONS: Final = {
    JobKind.RESTORE: Action.RESTORE,
    JobKind.ROLLBACK: Action.ROLLBACK,
}


def kind_of(request: JobRequest) -> JobKind:
    """The kind of a job with this request, as users see it."""
    return request.kind if isinstance(request, WriteRequest) else JobKind(request.kind)


def instant_action(request: JobRequest) -> Action | None:
    """The action of the job's instant; None for a task without an instant in the timeline."""
    if isinstance(request, WriteRequest):
        return _ACTIONS.get(request.kind, Action.COMMIT)
    return action_of(request)


def is_exclusive(request: JobRequest) -> bool:
    """Whether a write must not share its commit, or a task must not run beside another exclusive task."""
    return request.exclusive if isinstance(request, WriteRequest) else is_table_service(request)


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as users see it. Many tasks have no instant; a job may have a `result`, whose form depends on its kind.

    `actor`: the id of the API key or subject that requested it; None for the service itself.
    """

    id: str
    tenant_id: str
    dataset_id: str
    instant_id: str | None
    kind: JobKind
    state: JobState
    request: JobRequest
    progress: Progress
    attempts: int
    epoch: int
    committed_version: int | None
    first_offset: int | None
    last_offset: int | None
    rows: RowCounts
    error: Fault | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    transaction_id: str | None
    result: dict[str, Any] | None = None
    actor: str | None = None

    @property
    def access(self) -> RowAccess | None:
        """What its result and its errors may show of the dataset; None for anything."""
        return self.request.access if isinstance(self.request, ReadTask | ExportTask) else None

    @property
    def claim(self) -> Claim:
        """The claim of the worker that runs the job."""
        return Claim(job_id=self.id, epoch=self.epoch)

    @property
    def write(self) -> WriteRequest:
        """The request of a job that writes."""
        if not isinstance(self.request, WriteRequest):
            raise TypeError(f"job {self.id} is a task: {self.kind.value}")
        return self.request

    @property
    def instant(self) -> str:
        """The instant of a job that has one."""
        if self.instant_id is None:
            raise TypeError(f"job {self.id} has no instant: {self.kind.value}")
        return self.instant_id


class RequestKey(msgspec.Struct, frozen=True, kw_only=True):
    """The sender of a request, and its idempotency key.

    `request_hash` distinguishes a replay of the key from its misuse. `actor`: the id of the API key of the request;
    None for the service itself.
    """

    idempotency_key: str | None = None
    request_hash: str = ""
    actor: str | None = None


class NewJob(RequestKey, frozen=True, kw_only=True):
    """A job to accept. It has an instant if `instant_action` names what that does.

    `deaths`: 1 for one that does again what has killed its process before.
    """

    id: str
    dataset_id: str
    request: JobRequest
    instant_id: str | None = None
    deaths: int = 0

    @property
    def write(self) -> WriteRequest:
        """The request of a job that writes."""
        if not isinstance(self.request, WriteRequest):
            raise TypeError(f"job {self.id} is a task")
        return self.request


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a request; `replayed` if an earlier request with the same idempotency key made it."""

    job: Job
    replayed: bool


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's claim of a job: void as soon as the job has another epoch or is not running."""

    job_id: str
    epoch: int


class ClaimRules(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a claim; times in seconds.

    `process`: the one whose writes may be claimed; None for all. The others keep their places in the queue.
    """

    lease_seconds: float
    group_jobs_max: int
    dataset_writers_max: int
    attempts_max: int
    process: WriteProcess | None = None


class RunnableDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset with jobs that wait for a worker."""

    tenant_id: str
    dataset_id: str


class OutboxMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A wake-up: a dataset has writes (`work`), tasks (`tasks`), new changes (`changes`) or followers that may be due
    (`follow`).
    """

    topic: str
    tenant_id: str
    dataset_id: str


def failed_by_service(state: JobState, error: Fault | None) -> bool:
    """Whether it ended for a reason of the service's own, so that the same request may be made again."""
    return state is JobState.FAILED and error is not None and error.code in SERVICE_MADE
