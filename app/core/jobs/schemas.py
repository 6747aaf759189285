"""The JSON of jobs, and the options of their list."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypeAlias

import msgspec
from litestar.params import PathParameter

from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.stages import timings
from app.core.jobs.values import Job, JobState, Progress
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.parameters.resource_names import DatasetIdentity
from app.http.problems import fault_document
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation

JobId: TypeAlias = Annotated[str, PathParameter(description="The id of a job.")]


class ListJobsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_jobs`."""

    dataset: str | None = None
    """The id or the name of a dataset: its jobs only."""
    kind: list[JobKind] | None = None
    """The jobs of this kind only; repeated, of these kinds."""
    state: list[JobState] | None = None
    """The jobs in this state only; repeated, in these states."""
    unresolved: bool = False
    """The failed jobs only that no job of the same dataset and kind has made up for: none that was accepted later has
    succeeded.
    """


class JobLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a job's resources."""

    self_: Annotated[str, msgspec.Meta(examples=["/jobs/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"])]
    """The job."""
    events: str
    """Its state changes, as server-sent events."""
    dataset: Annotated[str, msgspec.Meta(examples=["/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d3"])]
    """Its dataset."""
    transaction: str | None
    """The transaction that it is part of; null for none."""


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: str
    """Its id."""
    dataset: DatasetIdentity
    """Its dataset, also one that was deleted."""
    kind: JobKind
    """What it does."""
    state: JobState
    """Where it is in its life."""
    operation: Operation | None
    """The operation of a write; null for other kinds."""
    metadata: Annotated[dict[str, str], msgspec.Meta(examples=[{"run": "nightly-7"}])]
    """Of a write, the metadata of its commit; `{}` for none."""
    progress: Progress
    """How far it is."""
    attempts: int
    """How often it was started."""
    committed_version: int | None
    """The version with its effect: the one that it committed; of a write that changed no row, such as a redrive of
    records that are still bad, the latest one then, which another job may have committed. Null before its end, and for
    jobs that commit none.
    """
    first_offset: int | None
    """The offset of the first change of its commit, which it may share with writes accepted at the same time; null if
    no row changed.
    """
    last_offset: int | None
    """The offset of the last change of its commit. Null if no row changed."""
    rows: RowCounts
    """What it did to rows."""
    result: dict[str, Any] | None
    """What it produced besides rows; its members depend on the kind. That of a write has `ignored_fields`, the unknown
    fields that were null in every row, `late`, its late rows where the dataset has a watermark, and `winner_version`,
    the version after which it was planned again the last time.
    """
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why it failed."""
    timings: Annotated[dict[str, int], msgspec.Meta(examples=[{"accept": 3, "wait": 8, "total": 52}])]
    """What its stages took, in milliseconds, as far as they are known: `accept`, `wait` and `total`; of a write that
    has succeeded also `claim`, `decode`, `plan`, `merge` with its part `lookup`, and `commit`, which writes may share.
    """
    replans: int
    """How often a write was planned again, since another job had changed the same rows before its commit."""
    created_at: datetime
    """When it was accepted."""
    started_at: datetime | None
    """When its last attempt started."""
    finished_at: datetime | None
    """When it ended."""
    actor: str | None
    """The id of the API key, or of the subject of the token, that requested it; null for the service itself."""
    links: JobLinks
    """The paths of its resources."""


class JobPage(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs, the newest first."""

    items: list[JobResponse]
    """The jobs of this page; fewer than `page_size` where many others had to be passed over."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


def job_path(job: Job) -> str:
    """The path of a job's resource."""
    return f"/jobs/{job.id}"


def transaction_path(transaction_id: str) -> str:
    """The path of a transaction's resource."""
    return f"/transactions/{transaction_id}"


def job_response(job: Job) -> JobResponse:
    """The JSON form of a job."""
    path = job_path(job)
    write = job.request if isinstance(job.request, WriteRequest) else None
    return JobResponse(
        id=job.id,
        dataset=DatasetIdentity(id=job.dataset_id, name=job.dataset_name),
        kind=job.kind,
        state=job.state,
        operation=None if write is None else write.operation,
        metadata={} if write is None else write.options.metadata or {},
        progress=job.progress,
        attempts=job.attempts,
        committed_version=job.committed_version,
        first_offset=job.first_offset,
        last_offset=job.last_offset,
        rows=job.rows,
        result=job.result,
        error=None if job.error is None else fault_document(job.error),
        timings=timings(job),
        replans=job.replans,
        created_at=job.created_at,
        started_at=job.started_at,
        finished_at=job.finished_at,
        actor=job.actor,
        links=JobLinks(
            self_=path,
            events=f"{path}/events",
            dataset=f"/datasets/{job.dataset_id}",
            transaction=None if job.transaction_id is None else transaction_path(job.transaction_id),
        ),
    )
