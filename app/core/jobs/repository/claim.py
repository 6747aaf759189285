"""Claims: which of a dataset's waiting jobs a worker gets, and what makes its hold void."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    and_,
    any_,
    bindparam,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.access.tenants.quotas import quotas_of
from app.access.tenants.repository.quotas import STORED_QUOTAS
from app.core.catalog.tables import heads
from app.core.jobs.kinds.declared import process_of
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.repository.commit_slots import lock_datasets
from app.core.jobs.repository.held_jobs import exhausted_fault, out_of_attempts, requeue_alone, take
from app.core.jobs.repository.job_ends import fail_locked
from app.core.jobs.repository.job_locks import (
    LEASE_LAPSED,
    POSTPONED,
    RUNNING,
    has_state,
    in_queue,
    lock_jobs,
    lock_with_transactions,
)
from app.core.jobs.repository.metering import may_run_another
from app.core.jobs.repository.participants import FailureParticipant
from app.core.jobs.tables import jobs
from app.core.jobs.values import ClaimRules, Job, JobQueue, JobState
from app.infra.db.any_of import any_of

_WRITES: Final = in_queue(JobQueue.WRITES)
_QUEUED: Final = and_(has_state(JobState.QUEUED), _WRITES)
_LAPSED: Final = and_(LEASE_LAPSED, _WRITES)
# The rows of a group that go to tasks by value. One message to an executor of Spark has 128 MiB at most.
_KEPT_BYTES_MAX: Final = 16 * 1024 * 1024


_IN_DATASETS: Final = jobs.c.dataset_id == any_(bindparam("dataset_ids", type_=ARRAY(jobs.c.dataset_id.type)))
_OWN: Final = jobs.c.dataset_id == bindparam("dataset_id", type_=jobs.c.dataset_id.type)


def _exists(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    return select(jobs.c.id).where(_IN_DATASETS, _WRITES, *conditions).exists()


_NEXT: Final = (
    select(jobs.c.kind, jobs.c.deaths, jobs.c.transforms, jobs.c.slow, jobs.c.transaction_id)
    .where(_OWN)
    .order_by(jobs.c.seq)
    .limit(1)
)
_NEXT_QUEUED: Final = _NEXT.where(_QUEUED)
_NEXT_UNHELD: Final = _NEXT.where(or_(_QUEUED, _LAPSED))
_QUEUED_ROW: Final = _NEXT_QUEUED.subquery("next_queued")
# The statements of each claim, made once.
_SITUATION: Final = select(
    select(func.count(jobs.c.group_id.distinct()))
    .where(_OWN, _WRITES, RUNNING, ~LEASE_LAPSED)
    .scalar_subquery()
    .label("groups"),
    _exists(LEASE_LAPSED).label("lapsed"),
    _exists(_QUEUED, out_of_attempts(bindparam("attempts_max", type_=Integer))).label("exhausted"),
    _exists(POSTPONED).label("postponed"),
    select(heads.c.dataset_id)
    .where(
        heads.c.dataset_id == any_(bindparam("dataset_ids", type_=ARRAY(heads.c.dataset_id.type))),
        heads.c.turn_until > func.clock_timestamp(),
    )
    .exists()
    .label("slot_requested"),
    STORED_QUOTAS.label("quotas"),
    _NEXT_UNHELD.with_only_columns(jobs.c.transaction_id).scalar_subquery().label("next_transaction"),
    _QUEUED_ROW,
).select_from(select(literal(1)).subquery("always").outerjoin(_QUEUED_ROW, true()))
# The length of a large value is known without reading it.
_GROUP: Final = (
    select(
        jobs.c.id,
        jobs.c.transaction_id,
        or_(jobs.c.abandoned, jobs.c.alone).label("alone"),
        func.coalesce(func.octet_length(jobs.c.staged_rows), 0).label("kept_bytes"),
    )
    .where(_OWN, _QUEUED)
    .order_by(jobs.c.seq)
    .limit(bindparam("jobs_max", type_=Integer))
    .with_for_update(key_share=True)
)


def claim_group(
    connection: Connection,
    dataset_id: str,
    owner: str,
    rules: ClaimRules,
    participants: Sequence[FailureParticipant],
    *,
    of_transaction: bool,
) -> list[Job] | None:
    """The jobs that `owner` now holds, in order of acceptance; empty if there is nothing to do or no room.

    `of_transaction`: finds the other datasets of a transaction that is next, and locks them, too. None if the
    caller must commit and try again: other datasets must be locked first, since datasets are locked in one order, or
    jobs were given back or ended.
    """
    dataset_ids = _datasets_of_next(connection, dataset_id) if of_transaction else [dataset_id]
    if not dataset_ids or dataset_id not in lock_datasets(connection, dataset_ids):
        return []
    values = {"dataset_id": dataset_id, "dataset_ids": dataset_ids, "attempts_max": rules.attempts_max}
    situation = connection.execute(_SITUATION, values).one()
    if situation.next_transaction is not None and not of_transaction:
        return None
    if situation.lapsed:
        # What was void is queued then, and may have had its attempts.
        _void_lapsed(connection, dataset_ids)
        return None
    if situation.groups >= rules.dataset_writers_max:
        return []
    if situation.slot_requested or (
        situation.groups and _is_running(connection, dataset_ids, jobs.c.contended)
    ):
        # The end of the slot is announced; if its holder died, the poll finds the waiting writes.
        return []
    if situation.exhausted:
        _give_up(connection, dataset_ids, rules.attempts_max, participants)
        return None
    if situation.postponed:
        # None overtakes a write that was postponed.
        return []
    if situation.kind is None or (rules.process is not None and _process(situation) is not rules.process):
        return []
    if situation.transaction_id is None:
        ids = _next_group(connection, dataset_id, rules.group_jobs_max)
    else:
        ids = _next_of_all(connection, situation.transaction_id, dataset_ids)
    if not ids:
        return None if ids is None else []
    if not may_run_another(connection, quotas_of(situation.quotas)):
        return []
    return take(connection, ids, owner, rules.lease_seconds)


def next_process(connection: Connection, dataset_id: str) -> WriteProcess | None:
    """Where the dataset's oldest waiting write runs; None if none waits."""
    row = _next_write(connection, dataset_id, _NEXT_QUEUED)
    return None if row is None else _process(row)


def _datasets_of_next(connection: Connection, dataset_id: str) -> list[str]:
    """The datasets that the claim will have to do with: this one, and those of the transaction that is next in it.

    Empty if no job waits.
    """
    next_write = _next_write(connection, dataset_id, _NEXT_UNHELD)
    if next_write is None:
        return []
    if next_write.transaction_id is None:
        return [dataset_id]
    query = select(jobs.c.dataset_id).where(jobs.c.transaction_id == next_write.transaction_id)
    return sorted(connection.execute(query).scalars())


def _next_write(connection: Connection, dataset_id: str, query: Select[Any]) -> Any:
    """The kind, the deaths and the transaction of the oldest job that the query finds; None if there is none."""
    return connection.execute(query, {"dataset_id": dataset_id}).one_or_none()


def _process(next_write: Any) -> WriteProcess:
    return process_of(
        JobKind(next_write.kind), next_write.deaths, transforms=next_write.transforms, slow=next_write.slow
    )


def _void_lapsed(connection: Connection, dataset_ids: Sequence[str]) -> None:
    """Puts jobs whose lease ran out back into the queue, all of a group (and of a transaction) at once.

    None of them is running then, so a worker that was only slow finds every claim of its group void, not just some.
    """
    ids = lock_with_transactions(connection, any_of(jobs.c.dataset_id, dataset_ids), _LAPSED)
    requeue_alone(connection, ids)


def _is_running(connection: Connection, dataset_ids: Sequence[str], *conditions: ColumnElement[bool]) -> bool:
    """Whether a group of writes that matches the conditions runs in one of the datasets."""
    running = select(jobs.c.id).where(any_of(jobs.c.dataset_id, dataset_ids), RUNNING, _WRITES, *conditions)
    return connection.execute(running.limit(1)).first() is not None


def _give_up(
    connection: Connection,
    dataset_ids: Sequence[str],
    attempts_max: int,
    participants: Sequence[FailureParticipant],
) -> None:
    given_up = lock_with_transactions(
        connection, any_of(jobs.c.dataset_id, dataset_ids), _QUEUED, out_of_attempts(attempts_max)
    )
    fail_locked(connection, given_up, exhausted_fault(attempts_max), participants)


def _next_group(connection: Connection, dataset_id: str, jobs_max: int) -> list[str] | None:
    """The oldest waiting jobs, up to one that goes alone: none overtakes an older one.

    Alone goes a job that must not share a commit, and one whose last attempt died. The rows that are kept with the jobs
    of a group are bounded. None if a transaction is next: it was accepted since the claim began, which does not wait
    for accepting.
    """
    group: list[str] = []
    kept_bytes = 0
    for row in connection.execute(_GROUP, {"dataset_id": dataset_id, "jobs_max": jobs_max}).all():
        if row.transaction_id is not None and not group:
            return None
        if row.alone and group:
            break
        kept_bytes += row.kept_bytes
        if group and kept_bytes > _KEPT_BYTES_MAX:
            break
        group.append(row.id)
        if row.alone:
            break
    return group


def _next_of_all(connection: Connection, transaction_id: str, dataset_ids: Sequence[str]) -> list[str] | None:
    """The writes of the transaction, if they are next in all their datasets and nothing runs in any.

    Empty if not: the worker that ends an earlier job then claims this transaction. None if one of its datasets is not
    among those locked.
    """
    members = connection.execute(
        select(jobs.c.id, jobs.c.dataset_id).where(jobs.c.transaction_id == transaction_id)
    ).all()
    if not {row.dataset_id for row in members} <= set(dataset_ids):
        return None
    if _is_running(connection, dataset_ids):
        return []
    following = (_next_write(connection, row.dataset_id, _NEXT_QUEUED) for row in members)
    if any(each is None or each.transaction_id != transaction_id for each in following):
        return []
    ids = lock_jobs(connection, jobs.c.transaction_id == transaction_id, _QUEUED)
    return ids if len(ids) == len(members) else []
