"""The background extension of leases: what it survives, and what ends it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

import pytest

from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.lease import LeaseHeartbeat
from app.core.jobs.values import Claim, Job, Progress
from app.infra.db.session import Database
from app.infra.errors import Unavailable
from app.process.features import FAILURE_PARTICIPANTS
from tests.support.store_fixtures import Stores


class Jobs(JobStore):
    """The catalogue's jobs. The next heartbeats fail with `failures`; `extended` is set by the first that succeeds."""

    def __init__(self, database: Database) -> None:
        super().__init__(database, FAILURE_PARTICIPANTS)
        self.failures: list[Exception] = []
        self.extended = threading.Event()

    def heartbeat(
        self, tenant_id: str, claims: Sequence[Claim], *, lease_seconds: float, progress: Progress
    ) -> set[str]:
        if self.failures:
            raise self.failures.pop()
        held = super().heartbeat(tenant_id, claims, lease_seconds=lease_seconds, progress=progress)
        self.extended.set()
        return held


def lease_of(jobs: Jobs, job: Job, lost: Callable[[], None]) -> LeaseHeartbeat:
    return LeaseHeartbeat(
        jobs,
        job.tenant_id,
        [job.claim],
        lease_seconds=60,
        heartbeat_seconds=0.001,
        progress=lambda: Progress(stage="merge", done=1, total=2),
        on_loss=lost,
    )


@pytest.mark.parametrize("failure", [Unavailable("no database"), ZeroDivisionError("a bug")])
def test_lease_is_extended_after_a_heartbeat_that_failed(
    stores: Stores, running: Callable[[], Job], failure: Exception
) -> None:
    jobs, lost = Jobs(stores.database), threading.Event()
    jobs.failures = [failure]
    with lease_of(jobs, running(), lost.set):
        assert jobs.extended.wait(10)
    assert jobs.failures == []
    assert not lost.is_set()


def test_lease_whose_claims_are_void_reports_its_loss(stores: Stores, running: Callable[[], Job]) -> None:
    jobs, lost, job = Jobs(stores.database), threading.Event(), running()
    stores.jobs.cancel(job.tenant_id, job.id)
    with lease_of(jobs, job, lost.set):
        assert lost.wait(10)
