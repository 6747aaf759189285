"""Jobs: accepted once, held by a lease, ended once. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY

from app.core.jobs.errors import JobNotCancellable
from app.core.jobs.kinds.kind import JobKind, WriteProcess
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.repository.claim import claim_group, next_process
from app.core.jobs.repository.claim_task import claim_task
from app.core.jobs.repository.held_jobs import (
    end_leases,
    hand_over,
    killed_fault,
    postpone,
    requeue_alone,
    requeue_killed,
    requeue_slow,
)
from app.core.jobs.repository.job_ends import cancel_locked, fail_jobs, fail_locked, succeed_task
from app.core.jobs.repository.job_lists import list_jobs
from app.core.jobs.repository.job_locks import (
    RUNNING,
    UNFINISHED,
    held_by,
    lock_jobs,
    lock_with_transactions,
)
from app.core.jobs.repository.job_row import JOB_COLUMNS, get_job, job_of
from app.core.jobs.repository.metering import QUEUED_JOBS, RUNNING_JOBS
from app.core.jobs.repository.outbox import post
from app.core.jobs.repository.participants import FailureParticipant
from app.core.jobs.repository.replays import replayed_job
from app.core.jobs.repository.waiting_datasets import waiting_datasets
from app.core.jobs.repository.writer_batches import find_batch
from app.core.jobs.tables import jobs
from app.core.jobs.values import (
    Accepted,
    Claim,
    ClaimRules,
    Job,
    JobFilter,
    JobQueue,
    NewJob,
    Progress,
    RunnableDataset,
    WorkerEnd,
)
from app.infra.db.session import Database
from app.infra.db.tenant_rotation import Rotation
from app.infra.db.times import lease_end
from app.kernel.format.errors import Fault, HeadwaterError
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page

# Each try locks what the last one found to be missing.
_CLAIM_TRIES_MAX = 4
_COUNTED_MAX = 1_000

_FIND: Final = select(*JOB_COLUMNS).where(jobs.c.id == any_(bindparam("ids", type_=ARRAY(jobs.c.id.type))))
_UNDER_WAY: Final = (
    select(jobs.c.id)
    .where(jobs.c.dataset_id == bindparam("dataset"), jobs.c.kind == bindparam("kind"), UNFINISHED)
    .limit(1)
)


class JobStore:
    """Jobs, claims and leases in Postgres. `participants` take part in the transactions in which jobs fail or are
    cancelled.
    """

    def __init__(self, database: Database, participants: Sequence[FailureParticipant]) -> None:
        self._database = database
        self._participants = tuple(participants)

    def accept(self, tenant_id: str, new: NewJob) -> Accepted:
        """`accept_all` of one job. Raises IdempotencyMismatch, NotFound (dataset gone), QuotaExceeded."""
        (outcome,) = self.accept_all(tenant_id, [new])
        if isinstance(outcome, HeadwaterError):
            raise outcome
        return outcome

    def accept_all(self, tenant_id: str, new: Sequence[NewJob]) -> list[Accepted | HeadwaterError]:
        """One transaction: jobs QUEUED, instants REQUESTED, idempotency keys, batches, outbox rows.

        One outcome per job, in order. A key or batch that is known returns its job, unless that failed for a reason of
        the service's own (then the new job takes it over). Raises QuotaExceeded if they go beyond a quota together.
        """
        with self._database.tenant(tenant_id) as connection:
            return accept_jobs(connection, new)

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return get_job(connection, job_id)

    def find(self, tenant_id: str, job_ids: Sequence[str]) -> list[Job]:
        """Those of the jobs that there are, in any order."""
        with self._database.tenant(tenant_id) as connection:
            return [job_of(row) for row in connection.execute(_FIND, {"ids": list(job_ids)})]

    def datasets_with(self, tenant_id: str, job_id: str) -> list[str]:
        """The ids of the datasets of a job and of the others of its transaction. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            job = get_job(connection, job_id)
            if job.transaction_id is None:
                return [job.dataset_id]
            others = select(jobs.c.dataset_id).where(jobs.c.transaction_id == job.transaction_id)
            return list(connection.execute(others).scalars())

    def page(self, tenant_id: str, job_filter: JobFilter, *, page_size: int, page_token: str | None) -> Page:
        """Jobs, the newest first. Raises InvalidRequest for a token that is not valid."""
        with self._database.tenant(tenant_id) as connection:
            return list_jobs(connection, tenant_id, job_filter, page_size=page_size, page_token=page_token)

    def find_by_key(
        self, tenant_id: str, dataset_id: str, idempotency_key: str, request_hash: str
    ) -> Job | None:
        """The job that `accept` would replay. Raises IdempotencyMismatch."""
        with self._database.tenant(tenant_id) as connection:
            return replayed_job(connection, dataset_id, idempotency_key, request_hash)

    def find_by_batch(
        self, tenant_id: str, dataset_id: str, writer_id: str, batch_id: int, rows_digest: str | None
    ) -> Job | None:
        """The job that `accept` would replay. Raises BatchOutOfOrder, BatchMismatch."""
        with self._database.tenant(tenant_id) as connection:
            return find_batch(connection, dataset_id, writer_id, batch_id, rows_digest)

    def cancel(self, tenant_id: str, job_id: str) -> Job:
        """Ends a queued or running job, and with it the others of its transaction; a commit under way either beat it
        or is fenced.

        Raises JobNotCancellable.
        """
        with self._database.tenant(tenant_id) as connection:
            conditions = jobs.c.id == job_id, UNFINISHED
            if is_uuid(job_id) and (ids := lock_with_transactions(connection, *conditions)):
                cancel_locked(connection, ids, self._participants)
                return get_job(connection, job_id)
            state = get_job(connection, job_id).state.value
            raise JobNotCancellable(f"The job has {state} already", state=state)

    def claim(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> list[Job]:
        """Takes the dataset's waiting writes, oldest first, as one group: epoch + 1, lease, instants
        INFLIGHT.

        Empty if none waits, the oldest is not one of `rules.process`, or `dataset_writers_max` groups hold live leases.
        A job whose attempt died before (its lease ran out) is claimed alone, so that it cannot take others down; one
        out of attempts is failed with `attempts-exhausted` instead. Writes of a transaction are claimed together, once
        they are next in all their datasets and nothing runs in any.
        """
        for number in range(_CLAIM_TRIES_MAX):
            with self._database.tenant(tenant_id) as connection:
                group = claim_group(
                    connection, dataset_id, owner, rules, self._participants, of_transaction=number > 0
                )
            if group is not None:
                return group
        return []

    def next_write(self, tenant_id: str, dataset_id: str) -> WriteProcess | None:
        """Where the dataset's oldest waiting write runs; None if none waits."""
        with self._database.tenant(tenant_id) as connection:
            return next_process(connection, dataset_id)

    def claim_task(self, tenant_id: str, dataset_id: str, owner: str, rules: ClaimRules) -> Job | None:
        """Takes the dataset's oldest waiting task; None if there is none. Tasks run beside writes, each by itself."""
        with self._database.tenant(tenant_id) as connection:
            return claim_task(connection, dataset_id, owner, rules, self._participants)

    def succeed(self, tenant_id: str, claim: Claim, result: dict[str, Any]) -> bool:
        """Ends a held task with its result. False if the claim is void."""
        with self._database.tenant(tenant_id) as connection:
            return succeed_task(connection, held_by([claim]), result)

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        """Extends the leases of the claims that still hold and returns their job ids."""
        with self._database.tenant(tenant_id) as connection:
            held_ids = lock_jobs(connection, held_by(claims))
            connection.execute(
                update(jobs)
                .where(jobs.c.id.in_(held_ids))
                .values(lease_until=lease_end(lease_seconds), progress=progress)
            )
        return set(held_ids)

    def contend(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Has no other group of writes claimed in the datasets of these claims, as long as they hold."""
        with self._database.tenant(tenant_id) as connection:
            held_ids = lock_jobs(connection, held_by(claims))
            connection.execute(update(jobs).where(jobs.c.id.in_(held_ids)).values(contended=True))

    def fail(self, tenant_id: str, claim: Claim, fault: Fault) -> bool:
        """Ends a held job, and with it the others of its transaction, and rolls their instants back.

        False if the claim is void.
        """
        with self._database.tenant(tenant_id) as connection:
            return bool(fail_jobs(connection, held_by([claim]), fault, self._participants))

    def release(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Puts held jobs back after a fault of their run, each to be tried alone; attempts stay counted."""
        with self._database.tenant(tenant_id) as connection:
            # No message to the relay: the poll finds them, and the pause does a passing fault good.
            requeue_alone(connection, lock_jobs(connection, held_by(claims)))

    def slow_down(self, tenant_id: str, claims: Sequence[Claim]) -> None:
        """Puts held jobs back that have used up their time slice: they run with the slow ones next."""
        with self._database.tenant(tenant_id) as connection:
            requeue_slow(connection, lock_jobs(connection, held_by(claims)))

    def postpone(self, tenant_id: str, claims: Sequence[Claim], waiting_for: str) -> None:
        """Puts held jobs of one group back after a fault of the environment: they are claimed together after a pause of
        1 s to 60 s, and the attempt does not count.
        """
        with self._database.tenant(tenant_id) as connection:
            postpone(connection, lock_jobs(connection, held_by(claims)), waiting_for)

    def end_claims(self, owner: str, end: WorkerEnd) -> None:
        """Frees the jobs of every tenant that a process holds, and wakes the workers for them.

        Unless it has stopped in order, each runs alone next. After `DEATHS_MAX` deaths a job fails.
        """
        of_owner = RUNNING, jobs.c.owner == owner
        with self._database.relay() as connection:
            tenants = connection.execute(select(jobs.c.tenant_id).where(*of_owner).distinct()).scalars().all()
        for tenant_id in tenants:
            with self._database.tenant(tenant_id) as connection:
                ids = lock_jobs(connection, *of_owner)
                self._free(connection, ids, end)
                queues = select(jobs.c.lane, jobs.c.dataset_id).where(jobs.c.id.in_(ids)).distinct()
                for queue, dataset_id in connection.execute(queues).all():
                    post(connection, "work" if queue == JobQueue.WRITES.value else "tasks", dataset_id)

    def _free(self, connection: Connection, ids: Sequence[str], end: WorkerEnd) -> None:
        match end:
            case WorkerEnd.STOPPED:
                hand_over(connection, ids)
            case WorkerEnd.DIED:
                end_leases(connection, ids)
            case WorkerEnd.KILLED:
                fail_locked(connection, requeue_killed(connection, ids), killed_fault(), self._participants)

    def count_queued(self, tenant_id: str) -> int:
        """The jobs that count against the quota `queued_jobs`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(QUEUED_JOBS).scalar_one()

    def count_running(self, tenant_id: str) -> int:
        """The jobs that count against the quota `running_jobs`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(RUNNING_JOBS).scalar_one()

    def is_under_way(self, tenant_id: str, dataset_id: str, kind: JobKind) -> bool:
        """Whether a job of the kind waits or runs for the dataset."""
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(_UNDER_WAY, {"dataset": dataset_id, "kind": kind.value})
            return rows.first() is not None

    def runnable(
        self, limit: int, queue: JobQueue = JobQueue.WRITES, rotation: Rotation | None = None
    ) -> list[RunnableDataset]:
        """Datasets with claimable jobs in the queue, in equal parts of every tenant (see `waiting_datasets`).

        Holds ids only. `rotation`: where the last call stopped; by default it starts with the first tenant. Postponed
        jobs are left out, and with a postponed write the later writes of its dataset.
        """
        with self._database.relay() as connection:
            return waiting_datasets(connection, queue, limit, rotation or Rotation())

    def postponed(self) -> int:
        """How many jobs of all tenants wait for the storage or the database since their last attempt, 1,000 at most."""
        some = select(jobs.c.seq).where(UNFINISHED, jobs.c.not_before.is_not(None)).limit(_COUNTED_MAX)
        with self._database.relay() as connection:
            return connection.execute(select(func.count()).select_from(some.subquery())).scalar_one()
