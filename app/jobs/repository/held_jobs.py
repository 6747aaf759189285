"""Hands jobs to a worker, and back into their queue."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, func, update

from app.db.times import lease_end
from app.format.errors import AttemptsExhausted, Fault
from app.jobs.repository.job_locks import NO_LEASE
from app.jobs.repository.job_row import JOB_COLUMNS, job_of
from app.jobs.tables import jobs
from app.jobs.values import Job, JobState, Progress


def take(connection: Connection, ids: Sequence[str], owner: str, lease_seconds: float) -> list[Job]:
    """Gives queued jobs that the caller has locked to `owner`, as one group; returns them in this order."""
    taken = connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(
            state=JobState.RUNNING.value,
            epoch=jobs.c.epoch + 1,
            attempts=jobs.c.attempts + 1,
            abandoned=False,
            owner=owner,
            group_id=ids[0],
            lease_until=lease_end(lease_seconds),
            progress=Progress(stage="claimed"),
            started_at=func.coalesce(jobs.c.started_at, func.clock_timestamp()),
        )
        .returning(*JOB_COLUMNS)
    )
    found = {row.id: job_of(row) for row in taken}
    return [found[job_id] for job_id in ids]


def void(connection: Connection, lapsed: Sequence[str]) -> None:
    """Puts jobs back into their queue that the caller has locked; every claim on them is void.

    A claim is of a running job at an epoch: it is void while the job waits, and after, since the next claim raises the
    epoch.
    """
    if not lapsed:
        return
    connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(lapsed))
        .values(state=JobState.QUEUED.value, abandoned=True, **NO_LEASE)
    )


def exhausted(attempts_max: int) -> Fault:
    """The fault of a job whose attempts are exhausted."""
    return Fault(
        code=AttemptsExhausted.code,
        title=AttemptsExhausted.title,
        detail=f"None of {attempts_max} attempts came to an end; the job has changed nothing",
        facts={"attempts": attempts_max},
    )
