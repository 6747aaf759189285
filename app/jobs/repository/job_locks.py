"""Conditions on the states and claims of jobs, and the order in which jobs are locked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, tuple_

from app.jobs.tables import jobs
from app.jobs.values import Claim, JobState

RUNNING: Final = jobs.c.state == JobState.RUNNING.value
UNFINISHED = jobs.c.state.in_([state.value for state in JobState if not state.final])
# One time for the whole statement: otherwise a lease could run out between two rows of a transaction, and the statement
# would find only the second.
LEASE_LAPSED: Final = and_(RUNNING, jobs.c.lease_until < func.statement_timestamp())
# Postponed after a fault of the environment.
POSTPONED: Final = and_(
    jobs.c.state == JobState.QUEUED.value,
    func.coalesce(jobs.c.not_before > func.statement_timestamp(), False),
)
NO_LEASE: dict[str, Any] = {"owner": None, "group_id": None, "lease_until": None}
# An ended job is never read again by a worker.
ENDED: dict[str, Any] = {**NO_LEASE, "staged_rows": None}


def held_by(claims: Sequence[Claim]) -> ColumnElement[bool]:
    """Whether a job is still held by one of the claims: the guard of everything a worker does to a job."""
    pairs = [(claim.job_id, claim.epoch) for claim in claims]
    return and_(tuple_(jobs.c.id, jobs.c.epoch).in_(pairs), RUNNING)


def lock_jobs(connection: Connection, *conditions: ColumnElement[bool]) -> list[str]:
    """The ids of the jobs that match the conditions, in order of acceptance, locked.

    Every transaction that changes several jobs locks them in this order, so that there is no deadlock.
    """
    query = select(jobs.c.id).where(*conditions).order_by(jobs.c.seq).with_for_update(key_share=True)
    return list(connection.execute(query).scalars())


def lock_with_transactions(connection: Connection, *conditions: ColumnElement[bool]) -> list[str]:
    """`lock_jobs`, along with the other unfinished writes of their transactions."""
    transactions = select(jobs.c.transaction_id).where(*conditions, jobs.c.transaction_id.is_not(None))
    return lock_jobs(connection, UNFINISHED, or_(and_(*conditions), jobs.c.transaction_id.in_(transactions)))
