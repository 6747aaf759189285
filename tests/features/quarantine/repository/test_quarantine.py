"""The quarantine in Postgres: listed in order, redriven once, by one tenant only."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from msgspec import structs

from app.core.catalog.values import Dataset
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.values import Job, JobState
from app.features.quarantine.errors import AlreadyRedriven
from app.features.quarantine.repository import QuarantineStore
from app.features.quarantine.service import ranges_of
from app.features.quarantine.values import RecordRange
from app.features.retention.repository.references import ReferenceStore
from app.infra.identifiers import new_id
from app.kernel.format.errors import Fault
from app.kernel.format.quarantine import QuarantineFile
from tests.support.lakehouse import claim_of, commit_of, message, new_job
from tests.support.store_fixtures import Stores
from tests.support.threads import together

ClaimJobs = Callable[..., list[Job]]


@pytest.fixture
def store(stores: Stores) -> QuarantineStore:
    return QuarantineStore(stores.database)


def quarantine_file(rows: int, first_row: int = 0) -> QuarantineFile:
    return QuarantineFile(
        path=f"quarantine/{new_id()}.parquet",
        size_bytes=10,
        checksum="xxh3:0",
        row_count=rows,
        first_row=first_row,
    )


@pytest.fixture
def write(stores: Stores, tenant_id: str, running: Callable[[], Job]) -> Callable[..., Job]:
    """A write that commits with these files of bad records."""

    def run(*files: QuarantineFile, changes: bool = True) -> Job:
        job = running()
        version = stores.catalog.get(tenant_id, job.dataset_id).version
        commit = commit_of([job], [message(version)] if changes else [], read_version=version)
        outcome = structs.replace(commit.outcomes[0], quarantine_files=files)
        stores.timeline.publish_one(tenant_id, structs.replace(commit, outcomes=(outcome,)))
        assert stores.jobs.get(tenant_id, job.id).state is JobState.SUCCEEDED
        return job

    return run


def listed(store: QuarantineStore, dataset: Dataset, **filters: object) -> list[tuple[str, int, int]]:
    job_id, after, limit = filters.get("job"), filters.get("after"), filters.get("limit", 100)
    parts = store.parts(dataset.tenant_id, dataset.id, job_id, after, limit)  # type: ignore[arg-type]
    return [(part.file.path, part.first, part.count) for part in parts]


def test_records_are_listed_in_commit_order(
    store: QuarantineStore, dataset: Dataset, write: Callable[..., Job]
) -> None:
    files = [quarantine_file(3, 5), quarantine_file(2), quarantine_file(4)]
    first, second = write(files[0]), write(files[1], files[2], changes=False)
    a, b, c = (file.path for file in files)
    assert listed(store, dataset) == [(a, 0, 3), (b, 0, 2), (c, 0, 4)]
    assert listed(store, dataset, job=second.id) == [(b, 0, 2), (c, 0, 4)]
    assert listed(store, dataset, job=new_id()) == listed(store, dataset, job="none") == []
    parts = store.parts(dataset.tenant_id, dataset.id, None, None, 100)
    assert [part.file for part in parts] == files
    assert [part.job_id for part in parts] == [first.id, second.id, second.id]
    assert listed(store, dataset, limit=4) == [(a, 0, 3), (b, 0, 1)]
    numbers = [part.number for part in parts]
    assert listed(store, dataset, after=(numbers[0], 1), limit=4) == [(a, 2, 1), (b, 0, 2), (c, 0, 1)]
    assert listed(store, dataset, after=(numbers[0], 2), limit=1) == [(b, 0, 1)]
    assert listed(store, dataset, after=(numbers[2], 3)) == []
    whole = store.named(dataset.tenant_id, dataset.id, {numbers[2]: [0], numbers[0]: [9], 0: [0]})
    assert {part.number: part.count for part in whole} == {numbers[0]: 3, numbers[2]: 4}


def test_failed_write_leaves_no_records(
    store: QuarantineStore, stores: Stores, dataset: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    stores.jobs.fail(dataset.tenant_id, claim_of(job), Fault(code="internal", title="", detail=""))
    commit = commit_of([job], [message()])
    outcome = structs.replace(commit.outcomes[0], quarantine_files=(quarantine_file(1),))
    stores.timeline.publish_one(dataset.tenant_id, structs.replace(commit, outcomes=(outcome,)))
    assert listed(store, dataset) == []


def redriven(store: QuarantineStore, dataset: Dataset) -> dict[str, dict[int, str]]:
    parts = store.parts(dataset.tenant_id, dataset.id, None, None, 100)
    return {part.file.path: part.redriven for part in parts if part.redriven}


def test_records_are_redriven_once(
    store: QuarantineStore, stores: Stores, dataset: Dataset, write: Callable[..., Job]
) -> None:
    file = quarantine_file(5)
    write(file)
    tenant = dataset.tenant_id
    accepted = store.redrive(tenant, new_job(dataset.id), ranges_of(file.path, [1, 2, 4]))
    assert redriven(store, dataset) == {file.path: dict.fromkeys([1, 2, 4], accepted.job.id)}
    waiting = [job.dataset_id for job in stores.jobs.runnable(1000)]
    refused = new_job(dataset.id)
    (part,) = store.parts(tenant, dataset.id, None, None, 9)
    some = store.parts(tenant, dataset.id, None, (part.number, 1), 2)
    assert [each.redriven for each in some] == [{2: accepted.job.id}]
    (named,) = store.named(tenant, dataset.id, {part.number: [0, 4]})
    assert (named.count, named.redriven) == (5, {4: accepted.job.id})
    with pytest.raises(AlreadyRedriven):
        store.redrive(tenant, refused, ranges_of(file.path, [0, 1]))
    # The refused one is not there, and no record of it is marked.
    assert [job.dataset_id for job in stores.jobs.runnable(1000)] == waiting
    other = store.redrive(tenant, new_job(dataset.id), ranges_of(file.path, [0, 3])).job
    assert redriven(store, dataset)[file.path][3] == other.id
    for ranges in ([RecordRange(path=file.path, first=5, count=1)] * 2, ranges_of("elsewhere", [0])):
        with pytest.raises(AlreadyRedriven):
            store.redrive(tenant, new_job(dataset.id), [ranges[0], *ranges])


def test_one_of_racing_redrives_gets_the_records(
    store: QuarantineStore, dataset: Dataset, write: Callable[..., Job]
) -> None:
    file = quarantine_file(3)
    write(file)

    def redrive() -> str | None:
        try:
            return store.redrive(
                dataset.tenant_id, new_job(dataset.id), ranges_of(file.path, range(3))
            ).job.id
        except AlreadyRedriven:
            return None

    outcomes = together([redrive] * 4)
    (winner,) = [outcome for outcome in outcomes if outcome is not None]
    assert redriven(store, dataset) == {file.path: dict.fromkeys(range(3), winner)}


def test_failed_redrive_returns_its_records(
    store: QuarantineStore, stores: Stores, dataset: Dataset, write: Callable[..., Job], claim: ClaimJobs
) -> None:
    file = quarantine_file(2)
    write(file)
    tenant = dataset.tenant_id
    first = store.redrive(tenant, new_job(dataset.id), ranges_of(file.path, [0, 1])).job
    (running,) = claim()
    stores.jobs.fail(tenant, claim_of(running), Fault(code="internal", title="", detail=""))
    assert redriven(store, dataset) == {}
    second = store.redrive(tenant, new_job(dataset.id), ranges_of(file.path, [1])).job
    assert redriven(store, dataset) == {file.path: {1: second.id}}
    stores.jobs.cancel(tenant, second.id)
    third = store.redrive(tenant, new_job(dataset.id), ranges_of(file.path, [0, 1])).job
    assert redriven(store, dataset) == {file.path: {0: third.id, 1: third.id}}
    assert first.id != third.id


def test_idempotency_key_replays_its_redrive(
    store: QuarantineStore, dataset: Dataset, write: Callable[..., Job]
) -> None:
    file = quarantine_file(2)
    write(file)
    tenant = dataset.tenant_id
    first = store.redrive(tenant, new_job(dataset.id, key="k"), ranges_of(file.path, [0]))
    again = store.redrive(tenant, new_job(dataset.id, key="k"), ranges_of(file.path, [0]))
    assert (again.is_replay, again.job.id) == (True, first.job.id)
    with pytest.raises(IdempotencyMismatch):
        store.redrive(tenant, new_job(dataset.id, key="k", request_hash="other"), ranges_of(file.path, [1]))
    assert redriven(store, dataset) == {file.path: {0: first.job.id}}


def test_discarded_records_lose_their_marks(
    store: QuarantineStore, dataset: Dataset, write: Callable[..., Job]
) -> None:
    files = [quarantine_file(2), quarantine_file(3)]
    job, other = write(files[0]), write(files[1])
    tenant = dataset.tenant_id
    store.redrive(tenant, new_job(dataset.id), ranges_of(files[0].path, [0]))
    assert store.discard(tenant, dataset.id, job.id) == 2
    assert store.discard(tenant, dataset.id, job.id) == store.discard(tenant, dataset.id, "none") == 0
    assert listed(store, dataset, job=other.id) == listed(store, dataset)
    with pytest.raises(AlreadyRedriven):
        store.redrive(tenant, new_job(dataset.id), ranges_of(files[0].path, [1]))


def test_records_of_another_tenant_are_not_redriven(
    store: QuarantineStore, stores: Stores, dataset: Dataset, write: Callable[..., Job]
) -> None:
    file = quarantine_file(2)
    job = write(file)
    (part,) = store.parts(dataset.tenant_id, dataset.id, None, None, 9)
    stranger = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert store.parts(stranger, dataset.id, None, None, 9) == []
    assert store.named(stranger, dataset.id, {part.number: [0]}) == []
    assert store.discard(stranger, dataset.id, job.id) == 0
    assert listed(store, dataset) == [(file.path, 0, 2)]


def test_files_of_bad_records_stay_referenced(
    stores: Stores, dataset: Dataset, write: Callable[..., Job], store: QuarantineStore
) -> None:
    references = ReferenceStore(stores.database)
    file = quarantine_file(2)
    job = write(file)
    paths = [file.path, "quarantine/orphan.parquet"]
    assert references.referenced(dataset.tenant_id, dataset.id, paths) == {file.path}
    store.discard(dataset.tenant_id, dataset.id, job.id)
    assert references.referenced(dataset.tenant_id, dataset.id, paths) == set()


def test_many_scattered_records_are_marked_in_one_call(
    store: QuarantineStore, dataset: Dataset, write: Callable[..., Job]
) -> None:
    files = [quarantine_file(20_000), quarantine_file(20_000)]
    write(*files)
    halves = [
        [each for file in files for each in ranges_of(file.path, range(half, 20_000, 2))] for half in (0, 1)
    ]
    # 20,000 ranges each: a statement for every one would take longer than a transaction may.
    began = time.monotonic()
    jobs = [store.redrive(dataset.tenant_id, new_job(dataset.id), half).job.id for half in halves]
    assert time.monotonic() - began < 10
    parts = store.parts(dataset.tenant_id, dataset.id, None, None, 40_000)
    assert [part.redriven for part in parts] == [{n: jobs[n % 2] for n in range(20_000)}] * 2
    with pytest.raises(AlreadyRedriven):
        store.redrive(dataset.tenant_id, new_job(dataset.id), halves[1][-1:])
