"""Datasets whose table services are to be looked after: which are due, who holds one, what a lost hold changes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy import text

from app.catalog.values import Dataset
from app.format.identifiers import new_id, new_instant_id
from app.jobs.values import Job
from app.maintenance.repository.maintenance import MaintenanceStore
from app.maintenance.values import ClaimedTable, ReconcilerRecord
from tests.support.lakehouse import commit_of, definition, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together

HOLD = 60.0


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
def hold(tables: MaintenanceStore, dataset: Dataset) -> Callable[..., ClaimedTable | None]:
    def run(owner: str = "worker", seconds: float = HOLD) -> ClaimedTable | None:
        return tables.claim(dataset.tenant_id, dataset.id, owner, seconds)

    return run


@pytest.fixture
def settle(tables: MaintenanceStore, dataset: Dataset) -> Callable[..., bool]:
    def run(held: ClaimedTable, *, wake: float | None = None, **memory: ReconcilerRecord) -> bool:
        wake_at = None if wake is None else held.now + timedelta(seconds=wake)
        return tables.settle(dataset.tenant_id, held, memory, wake_at)

    return run


def held(hold: Callable[..., ClaimedTable | None], **how: object) -> ClaimedTable:
    found = hold(**how)
    assert found is not None
    return found


def lapse(stores: Stores, dataset: Dataset) -> None:
    """Lets the holder's lease run out."""
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            text("UPDATE table_keeping SET lease_until = lease_until - :by, wake_at = wake_at - :by"),
            {"by": timedelta(seconds=HOLD + 1)},
        )


def test_it_is_due_after_each_commit_until_somebody_looks(
    stores: Stores,
    dataset: Dataset,
    publish: Callable[[], None],
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    assert due(), "a new dataset is looked at once: its services may have something to wait for"
    first = held(hold)
    assert (first.dataset.version, first.memory) == (0, {})
    assert settle(first)
    assert not due()
    assert hold() is None
    publish(), publish()
    assert due()
    second = held(hold)
    assert second.dataset == stores.catalog.get(dataset.tenant_id, dataset.id)
    assert not due()
    assert settle(second)
    assert not due()
    stores.catalog.evolve(
        dataset.tenant_id, dataset.id, dataset.definition, version=2, instant_id=new_instant_id()
    )
    assert due(), "other settings are a version, too"


def test_a_commit_during_a_look_is_looked_at_next(
    publish: Callable[[], None],
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    look = held(hold)
    publish()
    assert not due(), "somebody holds it"
    assert hold("other") is None
    assert settle(look)
    assert due()
    assert held(hold).dataset.version == 1


def test_it_is_due_when_its_time_has_come_and_remembers(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    look = held(hold)
    known = ReconcilerRecord(version=4, wake_at=look.now, failures=2, memory={"a": [1, {"b": "naïve \0"}]})
    assert settle(look, wake=3_600.0, one=known)
    assert not due()
    assert hold() is None
    # As if an hour had passed.
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE table_keeping SET wake_at = wake_at - interval '1 hour'"))
    assert due()
    again = held(hold)
    assert again.memory == {"one": known}
    assert again.epoch == look.epoch + 1
    assert again.now > look.now
    assert settle(again, wake=0.0)
    assert due()


def test_of_racing_workers_one_looks(
    dataset: Dataset, tables: MaintenanceStore, hold: Callable[..., ClaimedTable | None]
) -> None:
    found = together([lambda: hold("a"), lambda: hold("b")] * 4)
    assert sum(each is not None for each in found) == 1


def test_a_hold_that_was_lost_changes_nothing(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    slow = held(hold, owner="slow")
    lapse(stores, dataset)
    assert due(), "though its mark is gone: whoever held it may have died"
    other = held(hold, owner="other")
    assert other.epoch == slow.epoch + 1
    assert not settle(slow, wake=0.0, one=ReconcilerRecord(version=9))
    assert not due()
    assert settle(other, one=ReconcilerRecord(version=1))
    assert not settle(slow, wake=0.0, one=ReconcilerRecord(version=9))
    assert not settle(other, wake=0.0), "it has been settled"
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(text("UPDATE table_keeping SET wake_at = now()"))
    assert held(hold).memory == {"one": ReconcilerRecord(version=1)}


def test_looks_and_commits_that_race_miss_no_version(
    publish: Callable[[], None],
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    seen: list[int] = []

    def look() -> None:
        while len(seen) < 200 and (not seen or seen[-1] < 10):
            found = hold()
            if found is not None:
                seen.append(found.dataset.version)
                assert settle(found)

    def write() -> None:
        for _ in range(10):
            publish()

    together([look, write])
    assert seen == sorted(set(seen)), "nobody looks twice at one version"
    assert seen[-1] == 10
    assert not due()


def test_whoever_waits_longest_comes_first_and_no_more_than_are_asked_for(
    stores: Stores, tables: MaintenanceStore, tenant_id: str
) -> None:
    while due := tables.due(100):
        for tenant, dataset_id in due:
            found = tables.claim(tenant, dataset_id, "w", HOLD)
            if found is not None:
                tables.settle(tenant, found, {}, None)
    made = [stores.catalog.create(tenant_id, new_id(), definition(f"d-{number}")).id for number in range(5)]
    assert tables.due(10) == [(tenant_id, each) for each in made]
    assert tables.due(2) == [(tenant_id, each) for each in made[:2]]
    for each, seconds in ((made[0], -1), (made[1], -2), (made[2], 60)):
        found = tables.claim(tenant_id, each, "w", HOLD)
        assert found is not None
        tables.settle(tenant_id, found, {}, found.now + timedelta(seconds=seconds))
    # Those whose time has come do not wait behind those that are written to.
    assert tables.due(1) == [(tenant_id, made[3]), (tenant_id, made[1])]
    assert set(tables.due(9)) == {(tenant_id, made[index]) for index in (0, 1, 3, 4)}


def test_a_dataset_that_is_gone_is_forgotten(
    stores: Stores,
    dataset: Dataset,
    due: Callable[[], bool],
    hold: Callable[..., ClaimedTable | None],
    settle: Callable[..., bool],
) -> None:
    assert settle(held(hold), wake=0.0)
    stores.catalog.delete(dataset.tenant_id, dataset.id, version=None)
    assert due()
    assert hold() is None
    assert not due()
    with stores.database.tenant(dataset.tenant_id) as connection:
        assert connection.execute(text("SELECT count(*) FROM table_keeping")).scalar_one() == 0


def test_another_tenants_dataset_is_not_there(
    stores: Stores, tables: MaintenanceStore, dataset: Dataset
) -> None:
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert tables.claim(other, dataset.id, "w", HOLD) is None
    assert tables.claim(other, new_id(), "w", HOLD) is None
