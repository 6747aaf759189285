"""Participants of the transactions in which jobs fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from sqlalchemy import Connection, select

from app.core.catalog.values import Dataset
from app.core.jobs.errors import AttemptsExhausted
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.tables import jobs
from app.core.jobs.values import ClaimRules, Job, JobState
from app.kernel.format.errors import Fault
from tests.support.lakehouse import RULES
from tests.support.store_fixtures import Stores

FAULT = Fault(code="corrupt-file", title="A file is damaged", detail="none of it can be read")


@dataclass
class Recorder:
    """What a participant gets, and in what state it finds the job."""

    failed: list[tuple[str, JobKind, str, str]] = field(default_factory=list)
    cancelled: list[tuple[str, JobKind]] = field(default_factory=list)
    refuses: bool = False

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:
        state = connection.execute(select(jobs.c.state).where(jobs.c.id == job_id)).scalar_one()
        self.failed.append((job_id, kind, fault.code, state))
        if self.refuses:
            raise RuntimeError("the participant refuses")

    def job_cancelled(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        self.cancelled.append((job_id, kind))


def test_a_failed_job_is_reported_once_after_it_has_ended(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    recorder, job = Recorder(), running()
    store = JobStore(stores.database, [recorder])
    assert store.fail(dataset.tenant_id, job.claim, FAULT)
    assert not store.fail(dataset.tenant_id, job.claim, FAULT)
    assert recorder.failed == [(job.id, JobKind.WRITE, "corrupt-file", "failed")]


def test_a_job_that_is_out_of_attempts_is_reported(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    recorder, job = Recorder(), running()
    stores.jobs.release(dataset.tenant_id, [job.claim])
    rules = ClaimRules(lease_seconds=30, group_jobs_max=10, dataset_writers_max=1, attempts_max=1)
    assert JobStore(stores.database, [recorder]).claim(dataset.tenant_id, dataset.id, "worker", rules) == []
    assert recorder.failed == [(job.id, JobKind.WRITE, AttemptsExhausted.code, "failed")]


def test_a_cancelled_job_has_not_failed(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> None:
    recorder = Recorder()
    store = JobStore(stores.database, [recorder])
    job = running()
    store.cancel(dataset.tenant_id, job.id)
    assert recorder.failed == []
    assert recorder.cancelled == [(job.id, JobKind.WRITE)]
    assert store.claim(dataset.tenant_id, dataset.id, "worker", RULES) == []


def test_a_participant_that_raises_keeps_the_job_as_it_was(
    stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    with pytest.raises(RuntimeError, match="refuses"):
        JobStore(stores.database, [Recorder(refuses=True)]).fail(dataset.tenant_id, job.claim, FAULT)
    assert stores.jobs.get(dataset.tenant_id, job.id).state is JobState.RUNNING
