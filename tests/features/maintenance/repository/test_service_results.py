"""The last results of table services: which one stays, and who reads it."""

from __future__ import annotations

import pytest

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.kind import JobKind
from app.features.maintenance.repository.service_results import ServiceResultStore
from app.features.maintenance.values import ServiceResult
from app.infra.identifiers import new_id
from app.process.features import stores_on
from tests.support.store_fixtures import Stores


@pytest.fixture
def results(stores: Stores) -> ServiceResultStore:
    return ServiceResultStore(stores.database)


def test_result_of_the_latest_version_stays(results: ServiceResultStore, dataset: Dataset) -> None:
    tenant, id_ = dataset.tenant_id, dataset.id
    assert results.last(tenant, id_, JobKind.CLEAN) is None
    results.put(tenant, id_, JobKind.CLEAN, 3, {"n": 1})
    results.put(tenant, id_, JobKind.COMPACTION, 1, {"n": 9})
    # A worker that was silent for long ends after the one in its place.
    results.put(tenant, id_, JobKind.CLEAN, 2, {"n": 2})
    assert results.last(tenant, id_, JobKind.CLEAN) == ServiceResult(version=3, content={"n": 1})
    results.put(tenant, id_, JobKind.CLEAN, 3, {"n": 3})
    assert results.last(tenant, id_, JobKind.CLEAN) == ServiceResult(version=3, content={"n": 3})
    results.put(tenant, id_, JobKind.CLEAN, 4, {})
    assert results.last(tenant, id_, JobKind.CLEAN) == ServiceResult(version=4, content={})


def test_result_belongs_to_its_tenant(results: ServiceResultStore, stores: Stores, dataset: Dataset) -> None:
    results.put(dataset.tenant_id, dataset.id, JobKind.CLEAN, 1, {})
    other = stores.tenants.add_tenant(f"other-{new_id()}")
    assert results.last(other, dataset.id, JobKind.CLEAN) is None
    with pytest.raises(NotFound):
        results.put(other, dataset.id, JobKind.CLEAN, 2, {})


def test_deleted_dataset_takes_no_result(
    results: ServiceResultStore, stores: Stores, dataset: Dataset
) -> None:
    stores_on(stores.database).catalog.delete(dataset.tenant_id, dataset.id, version=None)
    with pytest.raises(NotFound):
        results.put(dataset.tenant_id, dataset.id, JobKind.CLEAN, 1, {})
