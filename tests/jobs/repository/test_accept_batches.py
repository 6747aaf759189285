"""Jobs accepted in one transaction: each has an outcome of its own, and none costs another its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.catalog.values import Dataset
from app.format.errors import IdempotencyMismatch, NotFound
from app.format.identifiers import new_id
from app.jobs.service.group_accept import GroupAccept
from app.jobs.values import Accepted, ClaimRules, NewJob
from tests.support.lakehouse import new_job
from tests.support.store_fixtures import Stores

RULES = ClaimRules(lease_seconds=30, group_jobs_max=1_000, dataset_writers_max=1, attempts_max=3)


def test_each_job_of_a_batch_has_its_own_outcome(stores: Stores, tenant_id: str, dataset: Dataset) -> None:
    known = stores.jobs.accept(tenant_id, new_job(dataset.id, key="known")).job
    batch = [
        new_job(dataset.id),
        new_job(dataset.id, key="known"),
        new_job(dataset.id, key="known", request_hash="another"),
        new_job(dataset.id, key="new"),
        new_job(dataset.id, key="new"),
        new_job(new_id()),
        new_job(dataset.id),
    ]
    plain, replay, misuse, first, second, nowhere, last = stores.jobs.accept_all(tenant_id, batch)
    assert isinstance(replay, Accepted)
    assert (replay.job.id, replay.replayed) == (known.id, True)
    assert isinstance(misuse, IdempotencyMismatch)
    assert isinstance(nowhere, NotFound)
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert (first.replayed, second.replayed, second.job.id) == (False, True, first.job.id)
    assert isinstance(plain, Accepted)
    assert isinstance(last, Accepted)
    claimed = stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)
    assert [job.id for job in claimed] == [known.id, batch[0].id, batch[3].id, batch[6].id]


def test_empty_batch_is_no_error(stores: Stores, tenant_id: str) -> None:
    assert stores.jobs.accept_all(tenant_id, []) == []


def test_concurrent_requests_share_transactions_and_lose_nothing(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    sizes: list[int] = []

    class Counting:
        def accept_all(self, tenant_id: str, new: list[NewJob]) -> object:
            sizes.append(len(new))
            return stores.jobs.accept_all(tenant_id, new)

    group = GroupAccept(Counting())  # type: ignore[arg-type]
    new = [new_job(dataset.id, key=f"k{number % 60}") for number in range(120)]
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda each: group.accept(tenant_id, each), new))
    assert sum(sizes) == 120
    assert len(sizes) < 120, "no two of 120 requests in 16 threads ever met"
    assert sum(not outcome.replayed for outcome in outcomes) == 60
    assert len({outcome.job.id for outcome in outcomes}) == 60
    assert len(stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)) == 60


def test_failed_batch_fails_every_request_in_it() -> None:
    class Broken:
        def accept_all(self, tenant_id: str, new: list[NewJob]) -> object:
            raise RuntimeError("the database is gone")

    group = GroupAccept(Broken())  # type: ignore[arg-type]

    def accept(number: int) -> str:
        with pytest.raises(RuntimeError) as caught:
            group.accept("tenant", new_job(f"dataset {number}"))
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(accept, range(40))) == {"the database is gone"}
