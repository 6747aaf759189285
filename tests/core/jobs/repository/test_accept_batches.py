"""Jobs accepted in one transaction: each has an outcome of its own, and none costs another its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest
from sqlalchemy.exc import DBAPIError

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.values import Accepted, ClaimRules, NewJob
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from tests.support.lakehouse import new_job
from tests.support.store_fixtures import Stores
from tests.support.waiting import until

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
    assert (replay.job.id, replay.is_replay) == (known.id, True)
    assert isinstance(misuse, IdempotencyMismatch)
    assert isinstance(nowhere, NotFound)
    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert (first.is_replay, second.is_replay, second.job.id) == (False, True, first.job.id)
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

    group = GroupAccept(Counting().accept_all)  # type: ignore[arg-type]
    new = [new_job(dataset.id, key=f"k{number % 60}") for number in range(120)]
    with ThreadPoolExecutor(16) as pool:
        outcomes = list(pool.map(lambda each: group.accept(tenant_id, each), new))
    assert sum(sizes) == 120
    assert len(sizes) < 120, "no two of 120 requests in 16 threads ever met"
    assert sum(not outcome.is_replay for outcome in outcomes) == 60
    assert len({outcome.job.id for outcome in outcomes}) == 60
    assert len(stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)) == 60


def test_outage_fails_every_request_of_a_batch_and_repeats_none() -> None:
    sizes: list[int] = []

    class Broken:
        def accept_all(self, tenant_id: str, new: list[NewJob]) -> object:
            sizes.append(len(new))
            raise Unavailable("the database is gone")

    group = GroupAccept(Broken().accept_all)  # type: ignore[arg-type]

    def accept(number: int) -> str:
        with pytest.raises(Unavailable) as caught:
            group.accept("tenant", new_job(f"dataset {number}"))
        return str(caught.value)

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(accept, range(40))) == {"the database is gone"}
    assert sum(sizes) == 40


def test_request_that_the_database_rejects_fails_alone(
    stores: Stores, tenant_id: str, dataset: Dataset
) -> None:
    waiting, go = Barrier(2), Event()

    class Slow:
        """Keeps the first batch until the others wait behind it."""

        def accept_all(self, tenant_id: str, new: list[NewJob]) -> object:
            if not go.is_set():
                waiting.wait(10)
                assert go.wait(10)
            return stores.jobs.accept_all(tenant_id, new)

    group = GroupAccept(Slow().accept_all)  # type: ignore[arg-type]

    def accept(key: str) -> bool:
        try:
            return group.accept(tenant_id, new_job(dataset.id, key=key)).is_replay
        except DBAPIError:
            return True

    with ThreadPoolExecutor(4) as pool:
        first = pool.submit(accept, "first")
        waiting.wait(10)
        # Postgres stores no NUL in a text.
        others = [pool.submit(accept, key) for key in ("a", "b\0", "c")]
        until(lambda: len(group._waiting[tenant_id]) == 3, "all to wait")
        go.set()
        assert [each.result() for each in (first, *others)] == [False, False, True, False]
    assert len(stores.jobs.claim(tenant_id, dataset.id, "worker", RULES)) == 3
