"""Claims of tasks: jobs that run beside the writes of their dataset, each by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, and_, func, select

from app.access.tenants.quotas import Quotas, quotas_of
from app.access.tenants.repository.quotas import STORED_QUOTAS
from app.core.jobs.repository.held_jobs import exhausted_fault, out_of_attempts, requeue_alone, take
from app.core.jobs.repository.job_ends import fail_locked
from app.core.jobs.repository.job_locks import LEASE_LAPSED, POSTPONED, lock_jobs
from app.core.jobs.repository.metering import may_run_another
from app.core.jobs.repository.participants import FailureParticipant
from app.core.jobs.tables import jobs
from app.core.jobs.values import ClaimRules, Job, JobQueue, JobState

_TASKS: Final = jobs.c.lane == JobQueue.TASKS.value
_SERVICES: Final = and_(_TASKS, jobs.c.alone)
# The first half of an advisory lock's key; the second is of the dataset.
_SERVICES_LOCK: Final = 0x5E7C
_QUEUED: Final = and_(jobs.c.state == JobState.QUEUED.value, _TASKS)


def claim_task(
    connection: Connection,
    dataset_id: str,
    owner: str,
    rules: ClaimRules,
    participants: Sequence[FailureParticipant],
) -> Job | None:
    """The oldest waiting task of the dataset, held by `owner` now; None if there is none that is free.

    Tasks whose attempt died are free again; those out of attempts are failed. Of those that go alone one runs at a
    time; the others are free beside it.
    """
    in_dataset = jobs.c.dataset_id == dataset_id
    requeue_alone(connection, lock_jobs(connection, in_dataset, LEASE_LAPSED, _TASKS))
    given_up = lock_jobs(connection, in_dataset, _QUEUED, out_of_attempts(rules.attempts_max))
    fail_locked(connection, given_up, exhausted_fault(rules.attempts_max), participants)
    oldest = select(jobs.c.id).where(in_dataset, _QUEUED, ~POSTPONED).order_by(jobs.c.seq).limit(1)
    has_lock, quotas = _lock_services(connection, dataset_id)
    if (
        not has_lock
        or connection.execute(
            select(jobs.c.id).where(in_dataset, _SERVICES, jobs.c.state == JobState.RUNNING.value).limit(1)
        ).first()
    ):
        oldest = oldest.where(~jobs.c.alone)
    free = connection.execute(oldest.with_for_update(skip_locked=True)).scalar_one_or_none()
    if free is None or not may_run_another(connection, quotas):
        return None
    return take(connection, [free], owner, rules.lease_seconds)[0]


def _lock_services(connection: Connection, dataset_id: str) -> tuple[bool, Quotas]:
    """Lets one claim of the dataset at a time look whether a table service runs; false where another is looking.

    Also the quotas of the tenant.
    """
    try_lock = func.pg_try_advisory_xact_lock(_SERVICES_LOCK, func.hashtext(dataset_id))
    has_lock, stored_quotas = connection.execute(select(try_lock, STORED_QUOTAS)).one()
    return has_lock, quotas_of(stored_quotas)
