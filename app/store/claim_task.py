"""Claims of tasks: jobs that run beside the writes of their dataset, each by itself."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, and_, select

from app.services.model import ClaimRules, Job, JobState, Lane
from app.store.claim import LEASE_LAPSED, exhausted, take, void
from app.store.ending import end_jobs, lock_jobs
from app.store.models import jobs

_TASKS: Final = jobs.c.lane == Lane.TASKS.value
_QUEUED: Final = and_(jobs.c.state == JobState.QUEUED.value, _TASKS)


def claim_task(connection: Connection, dataset_id: str, owner: str, rules: ClaimRules) -> Job | None:
    """The oldest waiting task of the dataset, held by `owner` now; None if there is none that is free.

    Tasks whose attempt died are free again; those out of attempts are failed.
    """
    here = jobs.c.dataset_id == dataset_id
    void(connection, lock_jobs(connection, here, LEASE_LAPSED, _TASKS))
    tired = lock_jobs(connection, here, _QUEUED, jobs.c.attempts >= rules.attempts_max)
    end_jobs(connection, tired, JobState.FAILED, exhausted(rules.attempts_max))
    oldest = select(jobs.c.id).where(here, _QUEUED).order_by(jobs.c.seq).limit(1)
    free = connection.execute(oldest.with_for_update(skip_locked=True)).scalar_one_or_none()
    return None if free is None else take(connection, [free], owner, rules.lease_seconds)[0]
