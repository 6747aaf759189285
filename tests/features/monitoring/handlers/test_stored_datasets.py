"""GET /storage/datasets: the datasets of all tenants that store most."""

from __future__ import annotations

from itertools import count
from typing import Any

import httpx2

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
    assert len(one.get("/storage/datasets", params={"limit": 1}).json()["items"]) == 1
    assert other.delete("/datasets/orders").status_code in (202, 204)
    items = one.get("/storage/datasets", params={"limit": 100}).json()["items"]
    [deleted] = [each for each in items if each["tenant"] == large]
    assert deleted["deleted_at"] is not None
    problem(one.get("/storage/datasets", params={"limit": 101}), 400, "invalid-request")


def test_only_operators_list_the_datasets_of_all_tenants(service: Service) -> None:
    key = service.new_key(f"stored-{next(_numbers)}", ("read", "write", "manage"))
    with service.client(key) as client:
        refused = problem(client.get("/storage/datasets"), 403, "forbidden")
        assert refused["required_scope"] == "operate"
