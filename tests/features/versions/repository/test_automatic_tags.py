"""Tags that a dataset's policy gives: which version gets the name, and what of it is to be seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from sqlalchemy import update

from app.access.errors import NotFound
from app.core.catalog.tables import heads
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.named_version import VersionKind
from app.core.jobs.values import Job
from app.features.versions.repository import NamedVersionStore
from app.infra.identifiers import new_id
from app.kernel.format.instant import Action, InstantState
from tests.support.lakehouse import commit_of, message
from tests.support.store_fixtures import Stores
from tests.support.threads import together


@pytest.fixture
def names(stores: Stores) -> NamedVersionStore:
    return NamedVersionStore(stores.database)


@pytest.fixture
def times(stores: Stores, tenant_id: str, dataset: Dataset, running: Callable[[], Job]) -> list[datetime]:
    """Makes three versions; returns when each was committed."""
    for number in range(3):
        stores.timeline.publish_one(tenant_id, commit_of([running()], [message(number)], read_version=number))
    found = stores.timeline.commit_times(tenant_id, dataset.id, [1, 2, 3])
    return [found[version] for version in (1, 2, 3)]


Tag = Callable[[str, datetime], int | None]


@pytest.fixture
def tag(names: NamedVersionStore, tenant_id: str, dataset: Dataset) -> Tag:
    return lambda name, before: names.add_automatic(tenant_id, dataset.id, name, before)


def test_last_version_of_a_period_is_tagged(
    stores: Stores, names: NamedVersionStore, tenant_id: str, dataset: Dataset, times: list[datetime], tag: Tag
) -> None:  # fmt: skip
    assert tag("day 0", times[0]) is None, "there was no version yet"
    assert tag("day 1", times[1]) == 1
    assert tag("day 2", times[2]) == 2
    assert tag("day 3", times[2] + timedelta(days=1)) == 3
    found = names.get(tenant_id, dataset.id, "day 2")
    assert (found.kind, found.version, found.automatic, found.expires_at) == (VersionKind.TAG, 2, True, None)
    page = stores.timeline.instants(tenant_id, dataset.id, page_size=9, page_token=None)
    tags = [each for each in page.items if each.action is Action.TAG]
    assert [(each.version, each.state, each.actor) for each in tags] == [
        (version, InstantState.COMPLETED, None) for version in (3, 2, 1)
    ]


def test_automatic_name_is_assigned_once(
    names: NamedVersionStore, tenant_id: str, dataset: Dataset, times: list[datetime], tag: Tag
) -> None:
    results = together([lambda: tag("2026-11-22", times[1])] * 4)
    assert sorted(results, key=str) == [1, None, None, None]
    assert tag("2026-11-22", times[2]) is None
    assert names.get(tenant_id, dataset.id, "2026-11-22").version == 1


def test_only_automatic_tags_are_listed(
    stores: Stores, names: NamedVersionStore, tenant_id: str, dataset: Dataset, times: list[datetime], tag: Tag
) -> None:  # fmt: skip
    assert tag("2026-11-21", times[1]) == 1
    assert tag("2026-11-22", times[2]) == 2
    with stores.database.tenant(tenant_id) as connection:
        connection.exec_driver_sql(
            "INSERT INTO named_versions (dataset_id, name, kind, version) VALUES (%s, '2026-11-20', 'tag', 1)",
            (dataset.id,),
        )
    assert sorted(names.automatic(tenant_id, dataset.id)) == ["2026-11-21", "2026-11-22"]
    assert names.remove(tenant_id, dataset.id, ["2026-11-21", "2026-11-19"]) == 1
    assert names.automatic(tenant_id, dataset.id) == ["2026-11-22"]


def test_expired_version_is_not_tagged(
    stores: Stores, tenant_id: str, dataset: Dataset, times: list[datetime], tag: Tag
) -> None:
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(update(heads).where(heads.c.dataset_id == dataset.id).values(earliest_version=2))
    assert tag("day 1", times[1]) is None
    assert tag("day 2", times[2]) == 2


def test_deleted_dataset_is_not_tagged(stores: Stores, tenant_id: str, dataset: Dataset, tag: Tag) -> None:
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        tag("day", dataset.created_at + timedelta(days=1))


def test_dataset_of_another_tenant_is_not_tagged(
    stores: Stores, names: NamedVersionStore, dataset: Dataset, times: list[datetime]
) -> None:
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    with pytest.raises(NotFound):
        names.add_automatic(other, dataset.id, "day", times[2])
    assert names.automatic(other, dataset.id) == []
