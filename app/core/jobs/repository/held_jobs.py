"""Hands jobs to a worker, and back into their queue."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Double, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.jobs.errors import AttemptsExhausted, ProcessKilled
from app.core.jobs.repository.instant_moves import moved_instants
from app.core.jobs.repository.job_locks import NO_LEASE
from app.core.jobs.repository.job_row import CLAIM_COLUMNS, claimed_job
from app.core.jobs.tables import jobs
from app.core.jobs.values import DEATHS_MAX, Job, JobState, Progress
from app.infra.db.times import lease_end
from app.kernel.format.errors import Fault
from app.kernel.format.instant import InstantEvent

# The pause after a fault of the environment. It doubles with each of them.
_PAUSE_SECONDS: Final = 1.0
_PAUSE_SECONDS_MAX: Final = 60.0
_DOUBLINGS_MAX: Final = 6
# No attempt runs, and the time of the last one is not counted.
_IN_QUEUE: Final[dict[str, Any]] = {"state": JobState.QUEUED.value, "claimed_at": None, **NO_LEASE}


_TAKEN: Final = bindparam("ids", type_=ARRAY(jobs.c.id.type))
# One statement, made once: it is part of each claim.
_TAKE: Final = (
    update(jobs)
    .where(jobs.c.id == any_(_TAKEN))
    .values(
        state=JobState.RUNNING.value,
        epoch=jobs.c.epoch + 1,
        attempts=jobs.c.attempts + 1,
        abandoned=False,
        contended=False,
        owner=bindparam("by"),
        group_id=bindparam("leader"),
        lease_until=lease_end(bindparam("seconds", type_=Double)),
        not_before=None,
        progress=Progress(stage="claimed"),
        started_at=func.coalesce(jobs.c.started_at, func.clock_timestamp()),
        claimed_at=func.clock_timestamp(),
    )
    .returning(*CLAIM_COLUMNS)
    .add_cte(moved_instants(_TAKEN, InstantEvent.START).cte("started"))
)


def take(connection: Connection, ids: Sequence[str], owner: str, lease_seconds: float) -> list[Job]:
    """Gives queued jobs that the caller has locked to `owner`, as one group; returns them in this order.

    Their instants become INFLIGHT.
    """
    values = {"ids": list(ids), "leader": ids[0], "by": owner, "seconds": lease_seconds}
    jobs_by_id = {row.id: claimed_job(row) for row in connection.execute(_TAKE, values)}
    return [jobs_by_id[job_id] for job_id in ids]


def requeue_alone(connection: Connection, ids: Sequence[str]) -> None:
    """Puts jobs back into their queue that the caller has locked, each to be tried alone; every claim on them is void.

    A claim is of a running job at an epoch: it is void while the job waits, and after, since the next claim raises the
    epoch.
    """
    if not ids:
        return
    connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(abandoned=True, **_IN_QUEUE))


def postpone(connection: Connection, ids: Sequence[str], waiting_for: str) -> None:
    """Puts jobs of one group back that the caller has locked, to be claimed together after a pause.

    The attempt does not count.
    """
    outages = connection.execute(select(func.max(jobs.c.outages)).where(jobs.c.id.in_(ids))).scalar_one()
    if outages is None:
        return
    pause = min(_PAUSE_SECONDS * 2 ** min(outages, _DOUBLINGS_MAX), _PAUSE_SECONDS_MAX)
    connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(
            outages=jobs.c.outages + 1,
            # Jobs that were postponed together must not all come back together.
            not_before=lease_end(pause * random.uniform(0.5, 1.0)),  # noqa: S311
            progress=Progress(stage=JobState.QUEUED.value, waiting_for=waiting_for),
            **_IN_QUEUE,
        )
    )


def requeue_killed(connection: Connection, ids: Sequence[str]) -> list[str]:
    """Puts jobs back that the caller has locked: their process was killed, by one of them or by one beside them.

    The death counts, the attempt does not. Returns those that have no further attempt.
    """
    if not ids:
        return []
    values = {"deaths": jobs.c.deaths + 1, "outages": jobs.c.outages + 1, "abandoned": True, **_IN_QUEUE}
    rows = connection.execute(
        update(jobs).where(jobs.c.id.in_(ids)).values(values).returning(jobs.c.id, jobs.c.deaths)
    )
    return [row.id for row in rows if row.deaths >= DEATHS_MAX]


def requeue_slow(connection: Connection, ids: Sequence[str]) -> None:
    """Puts jobs back that the caller has locked, and that have used up their time slice. The attempt does not count."""
    connection.execute(
        update(jobs).where(jobs.c.id.in_(ids)).values(slow=True, outages=jobs.c.outages + 1, **_IN_QUEUE)
    )


def end_leases(connection: Connection, ids: Sequence[str]) -> None:
    """Ends the leases of jobs that the caller has locked, as if they had run out: their worker has died."""
    connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(lease_until=func.least(jobs.c.lease_until, func.clock_timestamp()))
    )


def hand_over(connection: Connection, ids: Sequence[str]) -> None:
    """Puts jobs back that the caller has locked: their worker stops. The attempt does not count."""
    connection.execute(update(jobs).where(jobs.c.id.in_(ids)).values(outages=jobs.c.outages + 1, **_IN_QUEUE))


def out_of_attempts(attempts_max: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Whether a job has had its attempts. Those that a fault of the environment ended do not count."""
    return jobs.c.attempts - jobs.c.outages >= attempts_max


def killed_fault() -> Fault:
    """The fault of a job that has killed its processes."""
    return Fault(
        code=ProcessKilled.code,
        title=ProcessKilled.title,
        detail=(
            "the process that computed the rows was killed while it ran nothing else: the rows need more memory "
            "than it has"
        ),
        facts={"deaths": DEATHS_MAX},
    )


def exhausted_fault(attempts_max: int) -> Fault:
    """The fault of a job whose attempts are exhausted."""
    return Fault(
        code=AttemptsExhausted.code,
        title=AttemptsExhausted.title,
        detail=f"None of {attempts_max} attempts came to an end; the job has changed nothing",
        facts={"attempts": attempts_max},
    )
