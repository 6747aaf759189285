"""The ends of a job other than success: cancelled, failed; its instant is rolled back with it.

Writes of a transaction end together: the end of one is the end of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, select, update

from app.core.jobs.errors import TransactionFailed
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.instant_moves import move_instants
from app.core.jobs.repository.job_locks import ENDED, UNFINISHED, lock_with_transactions
from app.core.jobs.repository.metering import meter
from app.core.jobs.repository.outbox import post
from app.core.jobs.repository.participants import FailureParticipant
from app.core.jobs.tables import jobs
from app.core.jobs.values import JobQueue, JobState, Progress
from app.kernel.format.errors import Fault
from app.kernel.format.instant import InstantEvent


def fail_locked(
    connection: Connection, ids: Sequence[str], fault: Fault, participants: Sequence[FailureParticipant]
) -> None:
    """Fails unfinished jobs that the caller has locked."""
    _fail(connection, [(ids, fault)], participants)


def cancel_locked(
    connection: Connection, ids: Sequence[str], participants: Sequence[FailureParticipant] = ()
) -> None:
    """Cancels unfinished jobs that the caller has locked."""
    rows = _end(connection, ids, JobState.CANCELLED, None)
    for row in rows:
        for participant in participants:
            participant.job_cancelled(connection, row.id, JobKind(row.kind))
    _announce(connection, rows)


def _fail(
    connection: Connection,
    faults: Sequence[tuple[Sequence[str], Fault]],
    participants: Sequence[FailureParticipant],
) -> None:
    """Fails jobs, each for the fault beside its id."""
    ended_rows: list[Any] = []
    for ids, fault in faults:
        rows = _end(connection, ids, JobState.FAILED, fault)
        for row in rows:
            for participant in participants:
                participant.job_failed(connection, row.id, JobKind(row.kind), fault)
        ended_rows += rows
    _announce(connection, ended_rows)


def _end(connection: Connection, ids: Sequence[str], state: JobState, fault: Fault | None) -> Sequence[Any]:
    """Ends the jobs and returns their rows. The epoch rises: every claim on them is void."""
    if not ids:
        return ()
    rows = connection.execute(
        update(jobs)
        .where(jobs.c.id.in_(ids))
        .values(
            state=state.value,
            epoch=jobs.c.epoch + 1,
            progress=Progress(stage=state.value),
            error=fault,
            finished_at=func.clock_timestamp(),
            **ENDED,
        )
        .returning(jobs.c.id, jobs.c.dataset_id, jobs.c.kind)
    ).all()
    move_instants(connection, ids, InstantEvent.ABANDON)
    return rows


def _announce(connection: Connection, rows: Sequence[Any]) -> None:
    """Announces the ends of jobs, and what waits in their datasets: it may have waited for these. Meters the jobs.

    Called once in a transaction, with all jobs that end: others lock the same rows in the order of the datasets, too.
    """
    ids_by_dataset: dict[str, list[str]] = {}
    for row in rows:
        ids_by_dataset.setdefault(row.dataset_id, []).append(row.id)
    for dataset_id in sorted(ids_by_dataset):
        post(connection, "work", dataset_id)
        post(connection, "changes", dataset_id)
        meter(connection, dataset_id, ids_by_dataset[dataset_id])


def fail_jobs(
    connection: Connection,
    condition: ColumnElement[bool],
    fault: Fault,
    participants: Sequence[FailureParticipant],
) -> list[str]:
    """Fails the one job that matches the condition, and the others of its transaction. Returns the ids."""
    ids = lock_with_transactions(connection, condition)
    cause_id = connection.scalar(select(jobs.c.id).where(jobs.c.id.in_(ids), condition))
    if cause_id is None:
        return []
    # A key that reads the other jobs may lack a grant for this dataset, and the detail may quote its rows.
    consequence = Fault(
        code=TransactionFailed.code,
        title=TransactionFailed.title,
        detail="another write of the transaction failed; the transaction names it",
        facts={"cause": fault.code},
    )
    rest = [each for each in ids if each != cause_id]
    _fail(connection, [([cause_id], fault), (rest, consequence)], participants)
    return ids


def succeed_task(connection: Connection, condition: ColumnElement[bool], result: dict[str, Any]) -> bool:
    """Ends the one task that matches the condition, and notifies waiting requests; False if none does."""
    row = connection.execute(
        update(jobs)
        .where(jobs.c.lane == JobQueue.TASKS.value, condition)
        .values(
            state=JobState.SUCCEEDED.value,
            progress=Progress(stage=JobState.SUCCEEDED.value),
            result=result,
            finished_at=func.clock_timestamp(),
            **ENDED,
        )
        .returning(jobs.c.id, jobs.c.dataset_id, jobs.c.alone)
    ).one_or_none()
    if row is None:
        return False
    move_instants(connection, [row.id], InstantEvent.PUBLISH)
    post(connection, "changes", row.dataset_id)
    if row.alone:
        post(connection, "tasks", row.dataset_id)
    meter(connection, row.dataset_id, [row.id])
    return True


class JobCancellation:
    """Jobs in deletions of datasets."""

    def dataset_deleted(self, connection: Connection, dataset_id: str) -> None:
        """Cancels all unfinished jobs of the dataset, and announces the end of its feed."""
        ids = lock_with_transactions(connection, jobs.c.dataset_id == dataset_id, UNFINISHED)
        cancel_locked(connection, ids)
        post(connection, "changes", dataset_id)
