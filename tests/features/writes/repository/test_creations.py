"""Datasets that writes register, beside other transactions that use them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from sqlalchemy import select

from app.access.errors import NotFound
from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.live_datasets import share_datasets
from app.core.catalog.tables import heads
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import Job, JobFilter, JobState
from app.features.writes.repository import CreationStore
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault, HeadwaterError
from app.kernel.format.operation import Operation
from tests.support.lakehouse import RULES, definition, new_job
from tests.support.store_fixtures import Stores

FAULT = Fault(code="schema-mismatch", title="The rows do not fit", detail="row 0: a value is required")
CREATING = WriteRequest(operation=Operation.UPSERT, creates=True)


@pytest.fixture
def creations(stores: Stores) -> CreationStore:
    return CreationStore(stores.database, stores.catalog.live)


@pytest.fixture
def running(stores: Stores, creations: CreationStore, tenant_id: str) -> Job:
    """A claimed write that has registered its dataset."""
    dataset_id = new_id()
    creations.accept(tenant_id, definition("made"), new_job(dataset_id, request=CREATING))
    [job] = stores.jobs.claim(tenant_id, dataset_id, "worker", RULES)
    return job


def is_live(stores: Stores, job: Job) -> bool:
    try:
        return stores.catalog.get(job.tenant_id, "made").id == job.dataset_id
    except NotFound:
        return False


def test_failed_write_ends_its_dataset(stores: Stores, running: Job) -> None:
    assert is_live(stores, running)
    assert stores.jobs.fail(running.tenant_id, running.claim, FAULT)
    assert not is_live(stores, running)
    assert stores.jobs.get(running.tenant_id, running.id).error == FAULT


@pytest.mark.parametrize("by", ["a commit", "an acceptance"])
def test_dataset_that_is_in_use_stays_and_is_not_waited_for(stores: Stores, running: Job, by: str) -> None:
    with ThreadPoolExecutor(1) as other, stores.database.tenant(running.tenant_id) as connection:
        if by == "a commit":
            head = select(heads.c.version).where(heads.c.dataset_id == running.dataset_id)
            connection.execute(head.with_for_update())
        else:
            share_datasets(connection, [running.dataset_id])
        failed = other.submit(stores.jobs.fail, running.tenant_id, running.claim, FAULT)
        assert failed.result(timeout=5)
    assert is_live(stores, running)
    assert stores.jobs.get(running.tenant_id, running.id).state is JobState.FAILED


def test_first_write_decides_whether_a_failure_ends_the_dataset(
    stores: Stores, tenant_id: str, creations: CreationStore
) -> None:
    dataset = stores.catalog.create(tenant_id, new_id(), definition("made"))
    for request in (WriteRequest(operation=Operation.UPSERT), CREATING):
        stores.jobs.accept(tenant_id, new_job(dataset.id, request=request))
        for job in stores.jobs.claim(tenant_id, dataset.id, "worker", RULES):
            stores.jobs.fail(tenant_id, job.claim, FAULT)
    assert stores.catalog.get(tenant_id, "made").id == dataset.id


def test_one_of_racing_registrations_is_first_and_no_other_leaves_a_job(
    stores: Stores, tenant_id: str, creations: CreationStore
) -> None:
    barrier = Barrier(4)

    def register() -> str | HeadwaterError:
        new = new_job(new_id(), request=CREATING)
        barrier.wait()
        try:
            return creations.accept(tenant_id, definition("made"), new).job.dataset_id
        except DatasetExists as error:
            return error

    with ThreadPoolExecutor(4) as threads:
        ends: list[str | HeadwaterError] = [
            each.result() for each in [threads.submit(register) for _ in range(4)]
        ]
    [dataset_id] = [each for each in ends if isinstance(each, str)]
    assert stores.catalog.get(tenant_id, "made").id == dataset_id
    assert len(stores.jobs.page(tenant_id, JobFilter(), page_size=10, page_token=None).items) == 1


def test_job_that_is_refused_registers_nothing(
    stores: Stores, tenant_id: str, creations: CreationStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> list[HeadwaterError]:
        return [NotFound("refused")]

    monkeypatch.setattr("app.features.writes.repository.accept_jobs", refuse)
    with pytest.raises(NotFound, match="refused"):
        creations.accept(tenant_id, definition("made"), new_job(new_id(), request=CREATING))
    assert stores.catalog.count(tenant_id) == 0
