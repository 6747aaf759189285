"""How far a consumer is behind, where commits without changes stand between those that have some."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from app.core.catalog.values import Dataset
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.consumers import behind_since, seconds_since
from app.core.consumers.repository.followers import add_follower
from app.core.consumers.tables import consumers
from app.core.jobs.values import Job
from tests.support.lakehouse import commit_of, message
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores


@pytest.mark.parametrize(("position", "hours"), [(0, 5), (2, 5), (3, 4), (4, 4), (5, 1), (7, 1)])
def test_lag_is_the_age_of_the_commit_with_the_oldest_change_that_is_not_read(
    stores: Stores,
    postgres: TestServer,
    database_url: str,
    tenant_id: str,
    dataset: Dataset,
    running: Callable[[], Job],
    position: int,
    hours: int,
) -> None:
    """Commits without changes end where the one before them does, and come after it wherever their rows lie."""
    for version, changes in enumerate((3, 2, 0, 0, 4)):
        commit = commit_of([running()], [message(version, changes=changes)], read_version=version)
        stores.timeline.publish_one(tenant_id, commit)
    age = (
        "UPDATE commits SET committed_at = clock_timestamp() - make_interval(hours => 6 - version::int)"
        " WHERE dataset_id = %s AND version = %s"
    )
    with postgres.administration(database_url.rsplit("/", 1)[1]) as connection:
        for version in (5, 4, 3, 2, 1):
            connection.execute(age, [dataset.id, version])
    lag = seconds_since(behind_since(consumers.c.dataset_id, consumers.c.position))
    with stores.database.tenant(tenant_id) as tenant:
        add_follower(tenant, dataset.id, "c", ConsumerKind.READER, position)
        found = tenant.execute(select(lag).where(consumers.c.dataset_id == dataset.id)).scalar_one()
    assert round(found / 3600) == hours
