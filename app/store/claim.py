"""Claims: which of a dataset's waiting jobs a worker gets, and what makes its hold void."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, select, tuple_, update

from app.lake.errors import AttemptsExhausted
from app.lake.instant import InstantEvent
from app.services.model import Claim, ClaimRules, Fault, Job, JobState, Progress
from app.store.ending import NO_LEASE, end_jobs, lock_jobs, move_instants
from app.store.job_row import JOB_COLUMNS, job_of
from app.store.models import datasets, jobs

_QUEUED: Final = jobs.c.state == JobState.QUEUED.value
_RUNNING: Final = jobs.c.state == JobState.RUNNING.value
LEASE_LAPSED: Final = and_(_RUNNING, jobs.c.lease_until < func.clock_timestamp())


def lease_end(lease_seconds: float) -> ColumnElement[Any]:
    """When a lease given now runs out.

    `clock_timestamp`, since a transaction may have waited for its locks.
    """
    return func.clock_timestamp() + func.make_interval(0, 0, 0, 0, 0, 0, lease_seconds)


def held_by(claims: Sequence[Claim]) -> ColumnElement[bool]:
    """Whether a job is still held by one of the claims: the guard of everything a worker does to a job."""
    pairs = [(claim.job_id, claim.epoch) for claim in claims]
    return and_(tuple_(jobs.c.id, jobs.c.epoch).in_(pairs), _RUNNING)


def claim_group(connection: Connection, dataset_id: str, owner: str, rules: ClaimRules) -> list[Job]:
    """The jobs that `owner` now holds, in order of acceptance; empty if there is nothing to do or no room."""
    if not _lock_dataset(connection, dataset_id):
        return []
    _void_lapsed(connection, dataset_id)
    if _live_groups(connection, dataset_id) >= rules.dataset_writers_max:
        return []
    _give_up(connection, dataset_id, rules.attempts_max)
    ids = _next_group(connection, dataset_id, rules.group_jobs_max)
    if not ids:
        return []
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
            lease_until=lease_end(rules.lease_seconds),
            progress=Progress(stage="claimed"),
            started_at=func.coalesce(jobs.c.started_at, func.clock_timestamp()),
        )
        .returning(*JOB_COLUMNS)
    )
    found = {row.id: job_of(row) for row in taken}
    move_instants(connection, ids, InstantEvent.START)
    return [found[job_id] for job_id in ids]


def _lock_dataset(connection: Connection, dataset_id: str) -> bool:
    """Makes claims of a dataset serial. The lock goes along with the share that accepting a write takes."""
    live = (
        select(datasets.c.id)
        .where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_(None))
        .with_for_update(key_share=True)
    )
    return connection.execute(live).one_or_none() is not None


def _void_lapsed(connection: Connection, dataset_id: str) -> None:
    """Puts jobs whose lease ran out back into the queue, all of a group at once.

    Their epoch rises, so a worker that was only slow finds every claim of its group void, not just some.
    """
    lapsed = lock_jobs(connection, jobs.c.dataset_id == dataset_id, LEASE_LAPSED)
    if not lapsed:
        return
    connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(lapsed))
        .values(state=JobState.QUEUED.value, epoch=jobs.c.epoch + 1, abandoned=True, **NO_LEASE)
    )


def _live_groups(connection: Connection, dataset_id: str) -> int:
    running = select(func.count(jobs.c.group_id.distinct())).where(jobs.c.dataset_id == dataset_id, _RUNNING)
    return connection.execute(running).scalar_one()


def _give_up(connection: Connection, dataset_id: str, attempts_max: int) -> None:
    for job_id in lock_jobs(
        connection, jobs.c.dataset_id == dataset_id, _QUEUED, jobs.c.attempts >= attempts_max
    ):
        fault = Fault(
            code=AttemptsExhausted.code,
            title=AttemptsExhausted.title,
            detail=f"None of {attempts_max} attempts came to an end; the write has changed nothing",
            facts={"attempts": attempts_max},
        )
        end_jobs(connection, [job_id], JobState.FAILED, fault)


def _next_group(connection: Connection, dataset_id: str, jobs_max: int) -> list[str]:
    """The oldest waiting jobs, up to an abandoned one, which goes alone: none overtakes an older one."""
    query = (
        select(jobs.c.id, jobs.c.abandoned)
        .where(jobs.c.dataset_id == dataset_id, _QUEUED)
        .order_by(jobs.c.seq)
        .limit(jobs_max)
        .with_for_update(key_share=True)
    )
    group: list[str] = []
    for row in connection.execute(query).all():
        if row.abandoned and group:
            break
        group.append(row.id)
        if row.abandoned:
            break
    return group
