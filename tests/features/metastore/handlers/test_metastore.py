"""Reports to a Hive metastore: who may request them, and how far they are."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx2
import msgspec
import pytest
from sqlalchemy import insert

from app.access.tenants.repository.credentials import CredentialStore
from app.features.maintenance.tables import table_maintenance
from app.features.maintenance.values import ReconcilerRecord
from app.features.metastore.values import METASTORE_RECONCILER, MetastoreState
from app.infra.identifiers import new_id
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from tests.support.http import ORDERS, problem
from tests.support.service import Service

REPORTED = {**ORDERS, "services": {"metastore": {"database": "lake", "table": "orders"}}}


def test_metastore_service_requires_a_configured_metastore(client: httpx2.Client, orders: str) -> None:
    response = problem(
        client.post("/datasets", json={**REPORTED, "name": "reported"}), 422, "invalid-dataset"
    )
    [error] = response["errors"]
    assert error["pointer"] == "/services/metastore"
    assert "HEADWATER_METASTORE_URI" in error["detail"]
    etag = client.get(orders).headers["etag"]
    changed = client.patch(orders, json={"services": REPORTED["services"]}, headers={"If-Match": etag})
    assert problem(changed, 422, "invalid-dataset")["errors"] == [error]
    problem(client.get(f"{orders}/metastore"), 404, "not-found")


@pytest.mark.parametrize(
    ("policy", "pointer"),
    [
        ({"database": "Lake", "table": "orders"}, "/services/metastore/database"),
        ({"database": "lake", "table": "a-b"}, "/services/metastore/table"),
    ],
)
def test_metastore_names_must_be_valid_in_hive(policy: dict[str, str], pointer: str) -> None:
    new = msgspec.convert({**ORDERS, "services": {"metastore": policy}}, CreateDataset)
    with pytest.raises(Exception, match=pointer) as refused:
        define_dataset(new)
    assert [error["pointer"] for error in refused.value.facts["errors"]] == [pointer]  # type: ignore[attr-defined]


def test_metastore_report_state_is_returned(service: Service) -> None:
    key = service.new_key(f"reported-{new_id()}")
    principal = CredentialStore(service.database).authenticate(key)
    assert principal is not None
    definition = define_dataset(msgspec.convert(REPORTED, CreateDataset))
    dataset = service.platform.stores.catalog.create(principal.tenant_id, new_id(), definition)
    with service.client(key) as client:
        path = f"/datasets/{dataset.id}/metastore"
        none = {"version": None, "reported_at": None, "error": None, "failures": 0, "retry_at": None}
        assert client.get(path).json() == {"database": "lake", "table": "orders", "head": 0, **none}
        state = MetastoreState(
            database="lake",
            table="orders",
            error="it is away",
            failures=2,
            retry_at=datetime(2026, 11, 22, tzinfo=UTC),
        )
        memory = {METASTORE_RECONCILER: ReconcilerRecord(memory=msgspec.to_builtins(state))}
        with service.database.tenant(principal.tenant_id) as connection:
            connection.execute(insert(table_maintenance).values(dataset_id=dataset.id, memory=memory))
        response = client.get(path).json()
        assert (response["error"], response["failures"], response["retry_at"]) == (
            "it is away",
            2,
            "2026-11-22T00:00:00Z",
        )
