"""Datasets whose table services are to be looked after: which are due, who holds one, what a lost hold changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.features.maintenance.repository.maintenance import MaintenanceStore
from app.features.maintenance.values import ClaimedTable, ReconcilerRecord
from app.infra.identifiers import new_id, new_instant_id
from tests.support.lakehouse import commit_of, definition, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

LEASE_SECONDS = 60.0


@pytest.fixture
def tables(stores: Stores) -> MaintenanceStore:
    return MaintenanceStore(stores.database, stores.catalog.live)


@pytest.fixture
def publish(stores: Stores, dataset: Dataset, running: Callable[[], Job]) -> Callable[[], None]:
    """Makes one more version."""

    def run() -> None:
        version = stores.catalog.get(dataset.tenant_id, dataset.id).version
        stores.timeline.publish_one(
            dataset.tenant_id, commit_of([running()], [message()], read_version=version)
        )

    return run


@pytest.fixture
def due(tables: MaintenanceStore, dataset: Dataset) -> Callable[[], bool]:
    return lambda: (dataset.tenant_id, dataset.id) in tables.due(10_000)


@pytest.fixture
def claim_table(tables: MaintenanceStore, dataset: Dataset) -> Callable[..., ClaimedTable | None]:
    def run(owner: str = "worker", seconds: float = LEASE_SECONDS) -> ClaimedTable | None:
        return tables.claim(dataset.tenant_id, dataset.id, owner, seconds)

    return run


@pytest.fixture
def settle(tables: MaintenanceStore, dataset: Dataset) -> Callable[..., bool]:
    def run(claimed: ClaimedTable, *, wake: float | None = None, **memory: ReconcilerRecord) -> bool:
        wake_at = None if wake is None else claimed.now + timedelta(seconds=wake)
        return tables.settle(dataset.tenant_id, claimed, memory, wake_at)

    return run


def claimed(claim_table: Callable[..., ClaimedTable | None], **how: object) -> ClaimedTable:
    found = claim_table(**how)
    assert found is not None
    return found


def expire_lease(stores: Stores, dataset: Dataset) -> None:
    """Lets the holder's lease run out."""
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            text("UPDATE table_keeping SET lease_until = lease_until - :by, wake_at = wake_at - :by"),
            {"by": timedelta(seconds=LEASE_SECONDS + 1)},
        )


def test_dataset_is_due_after_each_commit_until_it_is_claimed(
    stores: Stores,
    dataset: Dataset,
    publish: Callable[[], None],
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    assert due(), "a new dataset is looked at once: its services may have something to wait for"
    first = claimed(claim_table)
    assert (first.dataset.version, first.memory) == (0, {})
    assert settle(first)
    assert not due()
    assert claim_table() is None
    publish(), publish()
    assert due()
    second = claimed(claim_table)
    assert second.dataset == stores.catalog.get(dataset.tenant_id, dataset.id)
    assert not due()
    assert settle(second)
    assert not due()
    stores.catalog.evolve(
        dataset.tenant_id, dataset.id, dataset.definition, version=2, instant_id=new_instant_id()
    )
    assert due(), "other settings are a version, too"


def test_commit_during_a_claim_makes_the_dataset_due_again(
    publish: Callable[[], None],
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    first_claim = claimed(claim_table)
    publish()
    assert not due(), "somebody holds it"
    assert claim_table("other") is None
    assert settle(first_claim)
    assert due()
    assert claimed(claim_table).dataset.version == 1


def test_dataset_is_due_at_its_wake_time_and_keeps_its_memory(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    first_claim = claimed(claim_table)
    known = ReconcilerRecord(
        version=4, wake_at=first_claim.now, failures=2, memory={"a": [1, {"b": "naïve \0"}]}
    )
    assert settle(first_claim, wake=3_600.0, one=known)
    assert not due()
    assert claim_table() is None
    # As if an hour had passed.
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE table_keeping SET wake_at = wake_at - interval '1 hour'"))
    assert due()
    again = claimed(claim_table)
    assert again.memory == {"one": known}
    assert again.epoch == first_claim.epoch + 1
    assert again.now > first_claim.now
    assert settle(again, wake=0.0)
    assert due()


def test_one_of_racing_workers_claims_the_dataset(
    dataset: Dataset, tables: MaintenanceStore, claim_table: Callable[..., ClaimedTable | None]
) -> None:
    found = together([lambda: claim_table("a"), lambda: claim_table("b")] * 4)
    assert sum(each is not None for each in found) == 1


def test_lost_claim_changes_nothing(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    slow = claimed(claim_table, owner="slow")
    expire_lease(stores, dataset)
    assert due(), "though its mark is gone: whoever held it may have died"
    other = claimed(claim_table, owner="other")
    assert other.epoch == slow.epoch + 1
    assert not settle(slow, wake=0.0, one=ReconcilerRecord(version=9))
    assert not due()
    assert settle(other, one=ReconcilerRecord(version=1))
    assert not settle(slow, wake=0.0, one=ReconcilerRecord(version=9))
    assert not settle(other, wake=0.0), "it has been settled"
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE table_keeping SET wake_at = now()"))
    assert claimed(claim_table).memory == {"one": ReconcilerRecord(version=1)}


def test_racing_claims_and_commits_miss_no_version(
    publish: Callable[[], None],
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    seen: list[int] = []

    def claim_versions() -> None:
        while len(seen) < 200 and (not seen or seen[-1] < 10):
            found = claim_table()
            if found is not None:
                seen.append(found.dataset.version)
                assert settle(found)

    def write() -> None:
        for _ in range(10):
            publish()

    together([claim_versions, write])
    assert seen == sorted(set(seen)), "nobody looks twice at one version"
    assert seen[-1] == 10
    assert not due()


def test_due_lists_the_longest_waiting_datasets_up_to_a_limit(
    stores: Stores, tables: MaintenanceStore, tenant_id: str
) -> None:
    while due := tables.due(100):
        for tenant, dataset_id in due:
            found = tables.claim(tenant, dataset_id, "w", LEASE_SECONDS)
            if found is not None:
                tables.settle(tenant, found, {}, None)
    made = [stores.catalog.create(tenant_id, new_id(), definition(f"d-{number}")).id for number in range(5)]
    assert tables.due(10) == [(tenant_id, each) for each in made]
    assert tables.due(2) == [(tenant_id, each) for each in made[:2]]
    for each, seconds in ((made[0], -1), (made[1], -2), (made[2], 60)):
        found = tables.claim(tenant_id, each, "w", LEASE_SECONDS)
        assert found is not None
        tables.settle(tenant_id, found, {}, found.now + timedelta(seconds=seconds))
    # Those whose time has come do not wait behind those that are written to.
    assert tables.due(1) == [(tenant_id, made[3]), (tenant_id, made[1])]
    assert set(tables.due(9)) == {(tenant_id, made[index]) for index in (0, 1, 3, 4)}


def test_deleted_dataset_is_removed_from_maintenance(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    claim_table: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    assert settle(claimed(claim_table), wake=0.0)
    stores.catalog.delete(dataset.tenant_id, dataset.id, version=None)
    assert due()
    assert claim_table() is None
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        assert connection.execute(text("SELECT count(*) FROM table_keeping")).scalar_one() == 0


def test_dataset_of_another_tenant_is_not_claimed(
    stores: Stores, tables: MaintenanceStore, dataset: Dataset
) -> None:
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert tables.claim(other, dataset.id, "w", LEASE_SECONDS) is None
    assert tables.claim(other, new_id(), "w", LEASE_SECONDS) is None


def test_datasets_of_one_tenant_do_not_hide_those_of_another(
    stores: Stores, tables: MaintenanceStore, tenant_id: str
) -> None:
    while due := tables.due(100):
        for tenant, dataset_id in due:
            found = tables.claim(tenant, dataset_id, "w", LEASE_SECONDS)
            if found is not None:
                tables.settle(tenant, found, {}, None)
    noisy = [stores.catalog.create(tenant_id, new_id(), definition(f"d-{number}")).id for number in range(6)]
    quiet = stores.tenants.add_tenant(f"tenant-{new_id()}")
    made = stores.catalog.create(quiet, new_id(), definition()).id
    assert tables.due(3) == [(tenant_id, noisy[0]), (quiet, made), (tenant_id, noisy[1])]
    for tenant, dataset_id in [(tenant_id, each) for each in noisy] + [(quiet, made)]:
        found = tables.claim(tenant, dataset_id, "w", LEASE_SECONDS)
        assert found is not None
        tables.settle(tenant, found, {}, found.now)
    assert tables.due(3) == [(tenant_id, noisy[0]), (quiet, made), (tenant_id, noisy[1])]
