"""Jobs: accepted once, held by a lease, ended once. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, and_, case, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.lake.errors import (
    AttemptsExhausted,
    CorruptFile,
    HeadwaterError,
    IdempotencyMismatch,
    JobNotCancellable,
    NotFound,
    StorageFull,
    Unavailable,
)
from app.lake.identifiers import is_uuid
from app.lake.instant import Action, InstantState, RowCounts
from app.services.model import (
    Accepted,
    Claim,
    ClaimRules,
    Fault,
    Job,
    JobKind,
    JobState,
    NewJob,
    Progress,
    RunnableDataset,
)
from app.store.catalog import share_dataset
from app.store.claim import LEASE_LAPSED, claim_group, held_by, lease_end
from app.store.ending import NO_LEASE, UNFINISHED, end_jobs, lock_jobs, post
from app.store.job_row import JOB_COLUMNS, job_of
from app.store.models import idempotency, instants, jobs
from app.store.session import Database

SERVICE_MADE: Final = frozenset(
    error.code for error in (HeadwaterError, StorageFull, Unavailable, AttemptsExhausted, CorruptFile)
)
"""Codes of failures that say nothing about the request: sending it again is right, and makes a new job."""


class JobStore:
    """Jobs, claims and leases in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def accept(self, tenant_id: str, new: NewJob) -> Accepted:
        """One transaction: job QUEUED, instant REQUESTED, idempotency key, outbox row.

        A key that is known returns its job, unless that failed for a reason of the service's own (then the
        new job takes the key over). Raises IdempotencyMismatch, NotFound (dataset gone).
        """
        with self._database.tenant(tenant_id) as connection:
            share_dataset(connection, new.dataset_id)
            known = None if new.idempotency_key is None else _reserve(connection, new, new.idempotency_key)
            if known is not None:
                return Accepted(job=known, replayed=True)
            job = _insert(connection, new)
            post(connection, "work", new.dataset_id)
            return Accepted(job=job, replayed=False)

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _get(connection, job_id)

    def find_by_key(
        self, tenant_id: str, dataset_id: str, idempotency_key: str, request_hash: str
    ) -> Job | None:
        """The job that `accept` would replay. Raises IdempotencyMismatch."""
        with self._database.tenant(tenant_id) as connection:
            return _replayed(connection, dataset_id, idempotency_key, request_hash)

    def cancel(self, tenant_id: str, job_id: str) -> Job:
        """Ends a queued or running job; a commit under way either beat it or is fenced.

        Raises JobNotCancellable.
        """
        with self._database.tenant(tenant_id) as connection:
            if is_uuid(job_id) and (ids := lock_jobs(connection, jobs.c.id == job_id, UNFINISHED)):
                end_jobs(connection, ids, JobState.CANCELLED)
                return _get(connection, job_id)
            state = _get(connection, job_id).state.value
            raise JobNotCancellable(f"The job has {state} already", state=state)

    def claim(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> list[Job]:
        """Takes the dataset's waiting writes, oldest first, as one group: epoch + 1, lease, instants
        INFLIGHT.

        Empty if none waits or `dataset_writers_max` groups hold live leases. A job whose attempt died before
        (its lease ran out) is claimed alone, so that it cannot take others down; one out of attempts is
        failed with `attempts-exhausted` instead.
        """
        with self._database.tenant(tenant_id) as connection:
            return claim_group(connection, dataset_id, owner, rules)

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        """Extends the leases of the claims that still hold and returns their job ids."""
        with self._database.tenant(tenant_id) as connection:
            held = lock_jobs(connection, held_by(claims))
            connection.execute(
                update(jobs)
                .where(jobs.c.id.in_(held))
                .values(lease_until=lease_end(lease_seconds), progress=progress)
            )
        return set(held)

    def fail(self, tenant_id: str, claim: Claim, fault: Fault) -> bool:
        """Ends a held job and rolls its instant back. False if the claim is void."""
        with self._database.tenant(tenant_id) as connection:
            held = lock_jobs(connection, held_by([claim]))
            end_jobs(connection, held, JobState.FAILED, fault)
        return bool(held)

    def release(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Puts held jobs back after a fault of their run, each to be tried alone; attempts stay counted."""
        with self._database.tenant(tenant_id) as connection:
            held = lock_jobs(connection, held_by(claims))
            # No message to the relay: the poll finds them, and the pause does a passing fault good.
            connection.execute(
                update(jobs)
                .where(jobs.c.id.in_(held))
                .values(state=JobState.QUEUED.value, abandoned=True, **NO_LEASE)
            )

    def runnable(self, limit: int) -> list[RunnableDataset]:
        """Datasets of every tenant with claimable jobs, longest waiting first. Holds ids only.

        Datasets that nobody works on come before those with a live lease, whose holder looks for more by
        itself.
        """
        waiting = or_(jobs.c.state == JobState.QUEUED.value, LEASE_LAPSED)
        live = and_(jobs.c.state == JobState.RUNNING.value, jobs.c.lease_until >= func.clock_timestamp())
        first = func.min(case((waiting, jobs.c.seq)))
        query = (
            select(jobs.c.tenant_id, jobs.c.dataset_id)
            .where(UNFINISHED)
            .group_by(jobs.c.tenant_id, jobs.c.dataset_id)
            .having(first.is_not(None))
            .order_by(func.bool_or(live), first)
            .limit(limit)
        )
        with self._database.relay() as connection:
            return [RunnableDataset(**row._asdict()) for row in connection.execute(query)]


def _get(connection: Connection, job_id: str) -> Job:
    row = None
    if is_uuid(job_id):
        row = connection.execute(select(*JOB_COLUMNS).where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound(f"There is no job {job_id}")
    return job_of(row)


def _insert(connection: Connection, new: NewJob) -> Job:
    values: dict[str, Any] = {
        "id": new.id,
        "dataset_id": new.dataset_id,
        "instant_id": new.instant_id,
        "kind": JobKind.WRITE.value,
        "state": JobState.QUEUED.value,
        "request": new.request,
        "progress": Progress(stage=JobState.QUEUED.value),
        "rows": RowCounts(),
    }
    row = connection.execute(insert(jobs).values(values).returning(*JOB_COLUMNS)).one()
    connection.execute(
        insert(instants).values(
            dataset_id=new.dataset_id,
            id=new.instant_id,
            action=Action.COMMIT.value,
            operation=new.request.operation.value,
            state=InstantState.REQUESTED.value,
            job_id=new.id,
            requested_at=row.created_at,
            counts=RowCounts(),
        )
    )
    return job_of(row)


def _reserve(connection: Connection, new: NewJob, key: str) -> Job | None:
    """Gives the key to the new job, or returns the job it belongs to.

    A second request waits here, on the unique key, until the first is durable or gone.
    """
    mine = {"dataset_id": new.dataset_id, "key": key, "request_hash": new.request_hash, "job_id": new.id}
    reserve = insert_unless(idempotency).values(mine).on_conflict_do_nothing().returning(idempotency.c.key)
    if connection.execute(reserve).one_or_none() is not None:
        return None
    connection.execute(_key_row(new.dataset_id, key).with_for_update())
    known = _replayed(connection, new.dataset_id, key, new.request_hash)
    if known is None:
        taken = idempotency.c.dataset_id == new.dataset_id, idempotency.c.key == key
        connection.execute(update(idempotency).where(*taken).values(job_id=new.id))
    return known


def _key_row(dataset_id: str, key: str) -> Any:
    return select(idempotency.c.job_id, idempotency.c.request_hash).where(
        idempotency.c.dataset_id == dataset_id, idempotency.c.key == key
    )


def _replayed(connection: Connection, dataset_id: str, key: str, request_hash: str) -> Job | None:
    row = connection.execute(_key_row(dataset_id, key)).one_or_none()
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise IdempotencyMismatch("This Idempotency-Key came with another request before", job_id=row.job_id)
    job = _get(connection, row.job_id)
    if job.state is JobState.FAILED and job.error is not None and job.error.code in SERVICE_MADE:
        return None
    return job
