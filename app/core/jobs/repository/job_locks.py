"""Conditions on the states and claims of jobs, and the order in which jobs are locked."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    BindParameter,
    ColumnElement,
    Connection,
    Select,
    and_,
    any_,
    bindparam,
    func,
    literal,
    literal_column,
    or_,
    select,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.sql.elements import Grouping

from app.core.jobs.tables import jobs
from app.core.jobs.values import Claim, JobQueue, JobState


def has_state(state: JobState) -> ColumnElement[bool]:
    """Whether a job has the state: a literal in the statement, so that every plan matches it with partial indexes."""
    return jobs.c.state == literal_column(f"'{state.value}'")


def in_queue(queue: JobQueue) -> ColumnElement[bool]:
    """Whether a job is in the queue, as a literal, too."""
    return jobs.c.lane == literal_column(f"'{queue.value}'")


RUNNING: Final = has_state(JobState.RUNNING)
UNFINISHED = jobs.c.state.in_([state.value for state in JobState if not state.final])
# One time for the whole statement: otherwise a lease could run out between two rows of a transaction, and the statement
# would find only the second.
LEASE_LAPSED: Final = and_(RUNNING, jobs.c.lease_until < func.statement_timestamp())
# Postponed after a fault of the environment.
POSTPONED: Final = and_(
    has_state(JobState.QUEUED),
    func.coalesce(jobs.c.not_before > func.statement_timestamp(), False),
)
NO_LEASE: dict[str, Any] = {"owner": None, "group_id": None, "lease_until": None}
# An ended job is never read again by a worker.
ENDED: dict[str, Any] = {**NO_LEASE, "staged_rows": None}


_IDS: Final = ARRAY(jobs.c.id.type)
_EPOCHS: Final = ARRAY(BigInteger)


def held_by(claims: Sequence[Claim]) -> ColumnElement[bool]:
    """Whether a job is still held by one of the claims: the guard of everything a worker does to a job."""
    ids, epochs = _in_arrays(claims)
    return _is_held(literal(ids, _IDS), literal(epochs, _EPOCHS))


def _in_arrays(claims: Sequence[Claim]) -> tuple[list[str], list[int]]:
    """The ids and the epochs of the claims. A statement with arrays has one text for any number of claims."""
    return [claim.job_id for claim in claims], [claim.epoch for claim in claims]


def _is_held(ids: BindParameter[Any], epochs: BindParameter[Any]) -> ColumnElement[bool]:
    epoch = Grouping(epochs)[func.array_position(ids, jobs.c.id)]
    return and_(jobs.c.id == any_(ids), jobs.c.epoch == epoch, RUNNING)


def lock_jobs(connection: Connection, *conditions: ColumnElement[bool]) -> list[str]:
    """The ids of the jobs that match the conditions, in order of acceptance, locked.

    Every transaction that changes several jobs locks them in this order, so that there is no deadlock.
    """
    return list(connection.execute(_locked(*conditions)).scalars())


def _locked(*conditions: ColumnElement[bool]) -> Select[Any]:
    return select(jobs.c.id).where(*conditions).order_by(jobs.c.seq).with_for_update(key_share=True)


def lock_held(connection: Connection, dataset_ids: Collection[str], claims: Sequence[Claim]) -> list[str]:
    """`lock_jobs` of those jobs of these datasets that the claims still hold."""
    ids, epochs = _in_arrays(claims)
    values = {"datasets": list(dataset_ids), "ids": ids, "epochs": epochs}
    return list(connection.execute(_LOCK_HELD, values).scalars())


def lock_with_transactions(connection: Connection, *conditions: ColumnElement[bool]) -> list[str]:
    """`lock_jobs`, along with the other unfinished writes of their transactions."""
    transactions = select(jobs.c.transaction_id).where(*conditions, jobs.c.transaction_id.is_not(None))
    return lock_jobs(connection, UNFINISHED, or_(and_(*conditions), jobs.c.transaction_id.in_(transactions)))


# A part of each commit, made once.
_LOCK_HELD: Final = _locked(
    jobs.c.dataset_id == any_(bindparam("datasets", type_=_IDS)),
    _is_held(bindparam("ids", type_=_IDS), bindparam("epochs", type_=_EPOCHS)),
)
