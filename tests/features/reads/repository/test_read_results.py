"""Results of read jobs: published with the success of their job, or not at all."""

from __future__ import annotations

import pytest

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.read import Disposition, ReadQuery, ReadTask
from app.core.jobs.values import Claim, Job, JobState, NewJob
from app.features.reads.errors import ResultExpired
from app.features.reads.jobs import FinishedRead
from app.features.reads.repository import ReadResultStore
from app.features.retention.repository.references import ReferenceStore
from app.infra.identifiers import new_id
from app.kernel.format.result_file import RunFile
from tests.support.lakehouse import RULES
from tests.support.store_fixtures import Stores
from tests.support.threads import together

TASK = ReadTask(query=ReadQuery.SNAPSHOT, version=0, format="csv", disposition=Disposition.FILES)


@pytest.fixture
def results(stores: Stores) -> ReadResultStore:
    return ReadResultStore(stores.database)


@pytest.fixture
def claimed_job(stores: Stores, tenant_id: str, dataset: Dataset) -> Job:
    """A read job that a worker runs."""
    stores.jobs.accept(tenant_id, NewJob(id=new_id(), dataset_id=dataset.id, request=TASK))
    job = stores.jobs.claim_task(tenant_id, dataset.id, "worker", RULES)
    assert job is not None
    assert job.request == TASK
    return job


def finished(job: Job, name: str = "", claim: Claim | None = None) -> FinishedRead:
    files = tuple(
        RunFile(path=f"{job.id}{name}/{n}", name=f"part-{n}", row_count=n, size_bytes=n, checksum="c")
        for n in (2, 1)
    )
    return FinishedRead(dataset_id=job.dataset_id, claim=claim or job.claim, result={"rows": 3}, files=files)


def test_result_files_are_listed_in_order_after_success(
    stores: Stores, results: ReadResultStore, tenant_id: str, claimed_job: Job
) -> None:
    assert results.finish(tenant_id, finished(claimed_job))
    job = stores.jobs.get(tenant_id, claimed_job.id)
    assert (job.state, job.result) == (JobState.SUCCEEDED, {"rows": 3})
    assert results.files(tenant_id, claimed_job.id, keep_seconds=60) == list(finished(claimed_job).files)


def test_only_the_attempt_with_the_job_claim_publishes_its_result(
    results: ReadResultStore, tenant_id: str, claimed_job: Job
) -> None:
    stale = Claim(job_id=claimed_job.id, epoch=claimed_job.epoch - 1)
    assert not results.finish(tenant_id, finished(claimed_job, "-stale", stale))
    outcomes = together(
        [lambda at=at: results.finish(tenant_id, finished(claimed_job, f"-{at}")) for at in range(3)]
    )
    assert sorted(outcomes) == [False, False, True]
    winner = outcomes.index(True)
    assert results.files(tenant_id, claimed_job.id, keep_seconds=60) == list(
        finished(claimed_job, f"-{winner}").files
    )


def test_result_exists_for_its_retention_and_its_dataset(
    stores: Stores, results: ReadResultStore, tenant_id: str, dataset: Dataset, claimed_job: Job
) -> None:
    results.finish(tenant_id, finished(claimed_job))
    with pytest.raises(ResultExpired):
        results.files(tenant_id, claimed_job.id, keep_seconds=0)
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    with pytest.raises(NotFound):
        results.files(neighbour, claimed_job.id, keep_seconds=60)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        results.files(tenant_id, claimed_job.id, keep_seconds=60)


def test_expired_results_lose_their_references(
    stores: Stores, results: ReadResultStore, tenant_id: str, claimed_job: Job
) -> None:
    results.finish(tenant_id, finished(claimed_job))
    references = ReferenceStore(stores.database)
    paths = [file.path for file in finished(claimed_job).files]
    references.expire_results(tenant_id, claimed_job.dataset_id, older_than_seconds=3600)
    assert references.referenced(tenant_id, claimed_job.dataset_id, paths) == set(paths)
    references.expire_results(tenant_id, claimed_job.dataset_id, older_than_seconds=0)
    assert references.referenced(tenant_id, claimed_job.dataset_id, paths) == set()
