"""A claim is held while its job runs, and never after: whatever ended the job, its worker changes nothing more."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from app.core.catalog.values import Dataset
from app.core.jobs.repository.held_jobs import requeue_alone
from app.core.jobs.repository.job_locks import held_by
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job, JobState, Progress
from app.core.timeline.values import Fenced
from app.kernel.format.errors import Fault
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores

FAULT = Fault(code="duplicate-key", title="t", detail="d")
End = Callable[[Stores, Job], None]


def succeed(stores: Stores, job: Job) -> None:
    assert isinstance(stores.timeline.publish(job.tenant_id, [commit_of([job], [message()])]), tuple)


def release(stores: Stores, job: Job) -> None:
    stores.jobs.release(job.tenant_id, [job.claim])


def lapse(stores: Stores, job: Job) -> None:
    with stores.database.tenant(job.tenant_id) as connection:
        requeue_alone(connection, [job.id])


def cancel(stores: Stores, job: Job) -> None:
    stores.jobs.cancel(job.tenant_id, job.id)


def fail(stores: Stores, job: Job) -> None:
    assert stores.jobs.fail(job.tenant_id, job.claim, FAULT)


@pytest.mark.parametrize("end", [succeed, release, lapse, cancel, fail])
def test_claim_of_a_job_that_runs_no_longer_is_void(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], end: End
) -> None:
    job = running()
    held = select(jobs.c.id).where(held_by([job.claim]))
    with stores.database.tenant(tenant_id) as connection:
        assert list(connection.execute(held).scalars()) == [job.id]
    end(stores, job)
    with stores.database.tenant(tenant_id) as connection:
        assert list(connection.execute(held).scalars()) == []


@pytest.mark.parametrize("end", [succeed, release, lapse, cancel, fail])
def test_worker_whose_claim_is_void_changes_nothing(
    stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job], end: End
) -> None:
    job = running()
    end(stores, job)
    before = stores.jobs.get(tenant_id, job.id)
    version = stores.catalog.get(tenant_id, dataset.id).version
    outcome = stores.timeline.publish(tenant_id, [commit_of([job], [message()], read_version=version)])
    assert outcome == Fenced(valid_ids=frozenset())
    assert not stores.jobs.fail(tenant_id, job.claim, FAULT)
    stores.jobs.release(tenant_id, [job.claim])
    progress = Progress(stage="merge")
    assert not stores.jobs.heartbeat(tenant_id, [job.claim], lease_seconds=9, progress=progress)
    assert stores.jobs.get(tenant_id, job.id) == before
    assert stores.catalog.get(tenant_id, dataset.id).version == version


def test_worker_with_a_superseded_claim_changes_nothing(
    stores: Stores, tenant_id: str, running: Callable[[], Job], claim: Callable[..., list[Job]]
) -> None:
    for end in (release, lapse):
        first = running()
        end(stores, first)
        [second] = claim(owner="another")
        assert second.id == first.id
        assert stores.timeline.publish(tenant_id, [commit_of([first], [message()])]) == Fenced(
            valid_ids=frozenset()
        )
        assert not stores.jobs.fail(tenant_id, first.claim, FAULT)
        assert stores.jobs.get(tenant_id, first.id).state is JobState.RUNNING
        cancel(stores, second)
