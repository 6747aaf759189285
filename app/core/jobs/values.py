"""Jobs: their requests, states and claims."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, StrEnum
from typing import Annotated, Any, Final

import msgspec

from app.core.jobs.errors import AttemptsExhausted
from app.core.jobs.kinds.declared import JobRequest
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.kinds.write import WriteRequest
from app.infra.errors import StorageFull, StorageUnavailable, Unavailable
from app.infra.files.errors import CorruptFile
from app.infra.instruments import REQUEST_BEGAN
from app.kernel.format.errors import Fault, HeadwaterError
from app.kernel.format.instant import RowCounts
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


DEATHS_MAX: Final = 2
"""The number of processes that a job may have killed before it fails."""


class WorkerEnd(str, Enum):
    """How the process ended that held some jobs."""

    STOPPED = "stopped"
    """In order: the attempts do not count."""
    DIED = "died"
    """With its machine, or for reasons that say nothing about its jobs: the attempts count."""
    KILLED = "killed"
    """By one of its jobs, it seems: the death counts, the attempts do not."""


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
    unresolved: bool = False
    """Failed jobs alone, after which no other job of their dataset and kind was accepted that has succeeded."""

    @property
    def takes_all(self) -> bool:
        """Whether the filter selects all jobs of the tenant, or of a dataset."""
        return self.kinds is None and self.states is None and self.datasets is None and not self.unresolved

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


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job as users see it. Many tasks have no instant; a job may have a `result`, whose form depends on its kind.

    `dataset_name`: the present name of its dataset. `actor`: the id of the API key or subject that requested it; None
    for the service itself. `timings`: milliseconds by stage, without those that follow from its times.
    `replans`: how often its commit was planned again.
    """

    id: str
    tenant_id: str
    dataset_id: str
    dataset_name: str
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
    timings: dict[str, int] | None = None
    replans: int = 0

    @property
    def access(self) -> RowAccess | None:
        """What its result and its errors may show of the dataset; None for anything."""
        return self.request.access

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

    `deaths`: 1 for one that does again what has killed its process before. `rows_digest`: identifies the rows of a
    batch; None if they are not compared. `slow`: whether it does again what took longer than a time slice. `began`:
    when its request began, by `time.perf_counter`; None for the service itself.
    """

    id: str
    dataset_id: str
    request: JobRequest
    instant_id: str | None = None
    deaths: int = 0
    rows_digest: str | None = None
    slow: bool = False
    began: float | None = msgspec.field(default_factory=REQUEST_BEGAN.get)

    @property
    def write(self) -> WriteRequest:
        """The request of a job that writes."""
        if not isinstance(self.request, WriteRequest):
            raise TypeError(f"job {self.id} is a task")
        return self.request


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """The job of a request; `is_replay` if an earlier request with the same idempotency key made it."""

    job: Job
    is_replay: bool


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


class ProcessKind(StrEnum):
    """What a process does. The last three belong to a worker, and run the SQL of users."""

    API = "api"
    WORKER = "worker"
    DERIVED = "derived"
    ISOLATED = "isolated"
    SLOW = "slow"


class ProcessReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a process reports of itself.

    `still`: its loops that stand still, and since when. `faults`: why processes that belong to it do not start, by
    their names. `executors`: the number that it has on a cluster; None where Spark runs in the process, or there is
    none. The bytes of the disk are those of the fullest of its disks, `disk_folder` says what is on that, and
    `resident_bytes` is the memory that it occupies; None if unknown.
    """

    kind: ProcessKind
    host: str = ""
    pid: int = 0
    version: str = ""
    still: Mapping[str, datetime] = {}
    faults: Mapping[str, str] = {}
    executors: int | None = None
    disk_free_bytes: int | None = None
    disk_total_bytes: int | None = None
    disk_folder: str | None = None
    resident_bytes: int | None = None


class KnownProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the register. `seen_at`: when it has last reported, and `silent_seconds`: the time since then."""

    id: str
    report: ProcessReport
    started_at: datetime
    seen_at: datetime
    silent_seconds: float
