"""Holds of readers: which versions can be held, and what is still there behind the beginning of the history."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import func, insert, select, update

from app.access.errors import NotFound
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.jobs.values import Job
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.kept_versions import share_history
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.tables import named_versions, read_leases
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores


@pytest.fixture
def leases(stores: Stores) -> ReadLeaseStore:
    return ReadLeaseStore(stores.database)


@pytest.fixture
def cut(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> Dataset:
    """Five versions, of which those from 4 on are kept, and version 2 by a name."""
    for version in range(5):
        stores.timeline.publish_one(
            tenant_id, commit_of([running()], [message(version)], read_version=version)
        )
    name(stores, dataset, 2)
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == dataset.id).values(earliest_version=4))
    return stores.catalog.get(tenant_id, dataset.id)


def name(stores: Stores, dataset: Dataset, version: int, expires: str | None = None) -> None:
    with stores.database.tenant(dataset.tenant_id) as connection:
        connection.execute(
            insert(named_versions).values(
                dataset_id=dataset.id,
                name=f"v{version}",
                kind="tag",
                version=version,
                expires_at=expires,
            )
        )


def leases_of(stores: Stores, dataset: Dataset) -> list[tuple[str, int]]:
    query = select(read_leases.c.reader, read_leases.c.version).order_by(
        read_leases.c.reader, read_leases.c.version
    )
    with stores.database.tenant(dataset.tenant_id) as connection:
        return [(row.reader, row.version) for row in connection.execute(query)]


def test_retained_version_can_be_leased(stores: Stores, leases: ReadLeaseStore, cut: Dataset) -> None:
    acquire = partial(leases.acquire, cut.tenant_id, cut.id)
    for version in (2, 4, 5):
        acquire(version, "a", 30)
    assert leases_of(stores, cut) == [("a", 2), ("a", 4), ("a", 5)]
    for version in (0, 1, 3):
        with pytest.raises(VersionExpired) as error:
            acquire(version, "b", 30)
        assert error.value.facts == {"version": version, "earliest": 4}
    leases.release(cut.tenant_id, cut.id, "a")
    leases.release(cut.tenant_id, cut.id, "a")
    assert leases_of(stores, cut) == []
    assert stores.catalog.get(cut.tenant_id, cut.id).earliest_version == 4


def test_lease_retains_a_version_until_it_expires(
    stores: Stores, leases: ReadLeaseStore, cut: Dataset
) -> None:
    with stores.database.tenant(cut.tenant_id) as connection:
        connection.execute(update(heads).values(earliest_version=3))
    leases.acquire(cut.tenant_id, cut.id, 3, "a", 30)
    with stores.database.tenant(cut.tenant_id) as connection:
        connection.execute(update(heads).values(earliest_version=4))
    leases.acquire(cut.tenant_id, cut.id, 3, "b", 30)
    leases.release(cut.tenant_id, cut.id, "a")
    # No hold becomes shorter.
    leases.acquire(cut.tenant_id, cut.id, 3, "b", 0)
    leases.check(cut.tenant_id, cut.id, 3)
    with stores.database.tenant(cut.tenant_id) as connection:
        connection.execute(update(read_leases).values(lease_until=func.clock_timestamp()))
    with pytest.raises(VersionExpired):
        leases.acquire(cut.tenant_id, cut.id, 3, "b", 30)


def test_version_that_another_one_has_followed_for_long_is_not_leased_again(
    stores: Stores, leases: ReadLeaseStore, cut: Dataset
) -> None:
    def lease(version: int, within: float) -> None:
        leases.acquire(cut.tenant_id, cut.id, version, "a", 3_600, superseded_seconds_max=within)

    def lease_until() -> object:
        with stores.database.tenant(cut.tenant_id) as connection:
            return connection.execute(select(read_leases.c.lease_until)).scalar_one()

    lease(4, within=60)
    until = lease_until()
    lease(4, within=0)
    assert lease_until() == until
    lease(2, within=0)
    assert leases_of(stores, cut) == [("a", 4)]
    # The latest version is there anyway, and one that is gone stays gone.
    lease(5, within=0)
    assert leases_of(stores, cut) == [("a", 4), ("a", 5)]
    with pytest.raises(VersionExpired):
        lease(3, within=60)


def gone(leases: ReadLeaseStore, dataset: Dataset, version: int) -> bool:
    try:
        leases.check(dataset.tenant_id, dataset.id, version)
    except VersionExpired:
        return True
    return False


def test_expired_name_retains_nothing(stores: Stores, leases: ReadLeaseStore, cut: Dataset) -> None:
    name(stores, cut, 1, expires="2001-01-01T00:00:00Z")
    name(stores, cut, 3, expires="2999-01-01T00:00:00Z")
    assert [gone(leases, cut, version) for version in range(6)] == [True, True, False, False, False, False]
    first = partial(leases.first_kept, cut.tenant_id, cut.id)
    assert [first(version) for version in range(7)] == [2, 2, 2, 3, 4, 5, 6]


def test_files_of_an_expired_version_are_not_returned(stores: Stores, cut: Dataset) -> None:
    """Rather than too few of them."""
    files = partial(stores.timeline.live_files, cut.tenant_id, cut.id, file_groups=None)
    assert [len(files(version)) for version in (2, 4, 5)] == [2, 4, 5]
    for version in (0, 1, 3):
        with pytest.raises(VersionExpired):
            files(version)


def test_unknown_dataset_cannot_be_leased(
    stores: Stores, leases: ReadLeaseStore, tenant_id: str, dataset: Dataset
) -> None:
    neighbour = stores.tenants.add_tenant(f"neighbour-{tenant_id}")
    with pytest.raises(NotFound):
        leases.acquire(neighbour, dataset.id, 0, "a", 30)
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        leases.acquire(tenant_id, dataset.id, 0, "a", 30)


def test_leases_and_commits_do_not_wait_for_each_other(
    stores: Stores, leases: ReadLeaseStore, cut: Dataset, running: Callable[[], Job]
) -> None:
    job = running()
    with stores.database.tenant(cut.tenant_id) as committing:
        committing.execute(select(heads.c.version).where(heads.c.dataset_id == cut.id).with_for_update())
        leases.acquire(cut.tenant_id, cut.id, 5, "a", 30)
    with stores.database.tenant(cut.tenant_id) as leasing:
        share_history(leasing, cut.id)
        stores.timeline.publish_one(cut.tenant_id, commit_of([job], [message(9)], read_version=5))
        leases.acquire(cut.tenant_id, cut.id, 6, "b", 30)
    assert leases_of(stores, cut) == [("a", 5), ("b", 6)]
