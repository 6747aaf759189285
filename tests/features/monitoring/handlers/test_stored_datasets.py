"""GET /storage/datasets: the datasets of all tenants that store most."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.features.monitoring.api import is_on_this_machine
from app.features.monitoring.compose import sample_datasets
from app.features.monitoring.service.sample_datasets import SAMPLE_TASK
from app.features.retention.compose import sample_usage
from tests.support.http import ORDERS, problem, upsert
from tests.support.leaders import end_lease
from tests.support.service import SCOPES, Service

_numbers = count(1)


def tenant_with_rows(service: Service, rows: int) -> tuple[str, httpx2.Client]:
    """A tenant whose dataset has this number of rows of different notes."""
    name = f"stored-{next(_numbers)}"
    client = service.client(service.new_key(name, SCOPES))
    path = client.post("/datasets", json=ORDERS).headers["location"]
    notes = ({"id": each, "note": f"{each * 7_919:x}" * 9} for each in range(rows))
    assert client.post(f"{path}/writes", json=upsert(*notes)).status_code == 202
    service.work()
    return name, client


def test_largest_datasets_of_all_tenants_come_first(service: Service) -> None:
    (small, one), (large, other) = tenant_with_rows(service, 1), tenant_with_rows(service, 2_000)
    sample_usage(service.platform).run()
    sample_datasets(service.platform).run()
    end_lease(service.database, SAMPLE_TASK)
    items = one.get("/storage/datasets", params={"limit": 100}).json()["items"]
    of_tenant: dict[str, dict[str, Any]] = {each["tenant"]: each for each in items}
    sizes = [each["stored_bytes"] for each in items]
    assert sizes == sorted(sizes, reverse=True)
    # Other tests of the folder may have more datasets than the list has items.
    assert [each["tenant"] for each in items if each["tenant"] in (small, large)] in ([large, small], [large])
    assert of_tenant[large]["dataset"] == "orders"
    assert of_tenant[large]["stored_bytes"] >= of_tenant[large]["size_bytes"] > 0
    assert of_tenant[large]["deleted_at"] is None
    sums = one.get("/storage/datasets").json()["sums"]
    assert sums["dataset_bytes"] >= of_tenant[large]["stored_bytes"]
    assert sums["database_bytes"] > 1_000_000
    assert (sums["files_on_disk"], sums["database_on_host"]) == (True, True)
    assert len(one.get("/storage/datasets", params={"limit": 1}).json()["items"]) == 1
    assert other.delete("/datasets/orders").status_code in (202, 204)
    items = one.get("/storage/datasets", params={"limit": 100}).json()["items"]
    [deleted] = [each for each in items if each["tenant"] == large]
    assert deleted["deleted_at"] is not None
    sums = one.get("/storage/datasets").json()["sums"]
    assert one.post("/storage/reaps").json()["files"] > 0
    # No sample is waited for, and a later one does not count the dataset again.
    for _ in range(2):
        after = one.get("/storage/datasets", params={"limit": 100}).json()
        assert large not in {each["tenant"] for each in after["items"]}
        assert after["sums"]["dataset_bytes"] <= sums["dataset_bytes"] - deleted["stored_bytes"]
        with service.database.tenant(other.get("/me").json()["tenant"]["id"]) as connection:
            assert connection.execute(text("SELECT stored_bytes FROM storage_samples")).scalar_one() == 0
            connection.execute(text("UPDATE storage_samples SET sampled_at = now() - interval '1 hour'"))
        sample_usage(service.platform).run()
    # Its usage of the day stays.
    [day] = other.get("/usage").json()["items"]
    assert day["stored_bytes"] == deleted["stored_bytes"]
    problem(one.get("/storage/datasets", params={"limit": 101}), 400, "invalid-request")


def test_files_of_the_quarantine_and_rendered_files_are_summed_up(service: Service) -> None:
    _, client = tenant_with_rows(service, 1)
    before = client.get("/storage/datasets").json()["sums"]
    bad = upsert({"id": "x"}) | {"on_error": "quarantine"}
    client.post("/datasets/orders/writes", json=bad)
    service.work()
    tenant, dataset = client.get("/me").json()["tenant"]["id"], client.get("/datasets/orders").json()["id"]
    with service.database.tenant(tenant) as connection:
        for key, path in (("a", "'p'"), ("b", "NULL")):
            connection.execute(
                text(
                    "INSERT INTO rendered_files (dataset_id, key, view, content, size_bytes, row_count, statistics, "
                    f"path, origin_version) VALUES ('{dataset}', '{key}', 'v', 'c', 700, 1, '{{}}', {path}, 1)"
                )
            )
    after = client.get("/storage/datasets").json()["sums"]
    assert after["quarantine_bytes"] > before["quarantine_bytes"]
    assert after["rendered_bytes"] == before["rendered_bytes"] + 700


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("postgresql:///headwater?host=/run/postgres", True),
        ("postgresql://app:secret@127.0.0.1:5433/headwater", True),
        ("postgresql://app@localhost/headwater", True),
        ("postgresql://app@db.example.com/headwater", False),
        ("postgresql://app@/headwater?host=db.example.com", False),
    ],
)
def test_database_on_this_machine_is_found_by_its_address(url: str, here: bool) -> None:
    assert is_on_this_machine(url) is here


def test_only_operators_list_the_datasets_of_all_tenants(service: Service) -> None:
    key = service.new_key(f"stored-{next(_numbers)}", ("read", "write", "manage"))
    with service.client(key) as client:
        refused = problem(client.get("/storage/datasets"), 403, "forbidden")
        assert refused["required_scope"] == "operate"


def test_tenants_have_what_they_store_and_the_quota_used_most_first(service: Service) -> None:
    (name, _), (other, operator) = tenant_with_rows(service, 40), tenant_with_rows(service, 1)
    quotas = {"rows_per_day": 80, "storage_bytes": 1_000_000_000, "datasets": 2}
    assert operator.patch(f"/tenants/{name}", json={"quotas": quotas}).status_code == 200
    sample_usage(service.platform).run()
    tenants = {each["name"]: each for each in operator.get("/tenants?page_size=1000").json()["items"]}
    first = tenants[name]
    assert first["rows_today"] == 40
    assert first["stored_bytes"] > 0
    of_rows, of_bytes = first["quota_shares"]
    assert of_rows == {"quota": "rows_per_day", "share": 0.5}
    assert of_bytes["quota"] == "storage_bytes"
    assert of_bytes["share"] == round(first["stored_bytes"] / 1_000_000_000, 4)
    assert (tenants[other]["rows_today"], tenants[other]["quota_shares"]) == (1, [])
    state = {"state": "suspended", "reason": "unpaid"}
    assert operator.patch(f"/tenants/{name}", json=state).status_code == 200
    tenants = {each["name"]: each for each in operator.get("/tenants?page_size=1000").json()["items"]}
    assert (tenants[name]["rows_today"], tenants[name]["quota_shares"]) == (40, [])
