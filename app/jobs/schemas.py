"""The JSON forms of what the API answers with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec

from app.format.instant import RowCounts
from app.format.operation import Operation
from app.http.encoding import PROBLEM
from app.http.problems import fault_document
from app.jobs.values import Job, JobKind, JobState, Progress, WriteRequest


class JobLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a job's resources are."""

    self_: str
    events: str
    dataset: str
    transaction: str | None


class JobResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A job. `first_offset`–`last_offset` are the changes of its commit, which it may share with writes accepted
    at the same time; `error` says why it failed. Exports and verifications have no `operation`, but a `result`.
    `actor` is the id of the API key that asked for it, null for what the service does by itself.
    """

    id: str
    kind: JobKind
    state: JobState
    operation: Operation | None
    progress: Progress
    attempts: int
    committed_version: int | None
    first_offset: int | None
    last_offset: int | None
    rows: RowCounts
    result: dict[str, Any] | None
    error: Annotated[dict[str, Any], PROBLEM] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    actor: str | None
    links: JobLinks


def job_path(job: Job) -> str:
    """The path of a job's resource."""
    return f"/jobs/{job.id}"


def transaction_path(transaction_id: str) -> str:
    """The path of a transaction's resource."""
    return f"/transactions/{transaction_id}"


def job_response(job: Job) -> JobResponse:
    """The JSON form of a job."""
    path = job_path(job)
    return JobResponse(
        id=job.id,
        kind=job.kind,
        state=job.state,
        operation=job.request.operation if isinstance(job.request, WriteRequest) else None,
        progress=job.progress,
        attempts=job.attempts,
        committed_version=job.committed_version,
        first_offset=job.first_offset,
        last_offset=job.last_offset,
        rows=job.rows,
        result=job.result,
        error=None if job.error is None else fault_document(job.error),
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
