"""A tenant with one of everything is deleted while it writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import httpx2

from app.features.retention.compose import end_tenants
from app.infra.db.columns import metadata
from app.infra.identifiers import new_id
from tests.support.exports import EVERY_MINUTE, ONCE
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.waiting import until

VIEW = "SELECT id, count(*) AS n FROM orders GROUP BY id"


def furnish(client: httpx2.Client, service: Service) -> None:
    """Makes one of everything, and leaves a job that waits."""

    def sent(method: str, path: str, **request: Any) -> Any:
        answer = client.request(method, path, **request)
        assert answer.is_success, answer.text
        return answer.json()

    sent("POST", "/datasets", json=ORDERS)
    orders = "/datasets/orders"
    bad = {**upsert({"id": 1}, {"id": "bad"}), "on_error": "quarantine"}
    sent("POST", f"{orders}/writes", json=bad)
    service.work()
    sent("POST", "/webhooks", json={"dataset": "orders", "url": "http://127.0.0.1:9/"})
    sent("POST", "/views", json={"name": "counts", "sql": VIEW})
    sent("PUT", f"{orders}/consumers/reader", json={"offset": 1})
    sent("POST", f"{orders}/tags", json={"name": "release", "version": 1})
    sent(
        "POST",
        f"{orders}/uploads",
        content=b'{"id": 3}\n',
        headers={"Content-Type": "application/octet-stream"},
    )
    sent("POST", f"{orders}/exports", json=ONCE)
    sent("POST", f"{orders}/exports", json=EVERY_MINUTE)
    service.work()
    sent("POST", f"{orders}/writes", json=upsert({"id": 4}))


def test_tenant_is_deleted_while_it_writes(service: Service, new_client: Callable[..., httpx2.Client]):
    operator = new_client(("operate",))
    tenants = []
    for _ in range(2):
        tenant = operator.post("/tenants", json={"name": f"t-{new_id()[-12:]}-x"}).json()
        tenants.append((tenant, service.client(tenant["api_key"])))
        furnish(tenants[-1][1], service)
    (gone, client), (other, its_client) = tenants
    rows_of_other = its_client.get("/datasets/orders/rows").json()

    answers: list[int] = []

    def write() -> None:
        while not answers or answers[-1] != 401:
            body = upsert({"id": len(answers)})
            answers.append(client.post("/datasets/orders/writes", json=body).status_code)

    writer = threading.Thread(target=write)
    writer.start()
    path = f"/tenants/{gone['name']}"
    wrong = problem(operator.delete(path, params={"confirm": other["name"]}), 412, "wrong-confirmation")
    [fault] = wrong["errors"]
    assert fault["pointer"] == "/confirm"
    assert fault["detail"] == f"expected {gone['name']!r}, the name of the tenant, got {other['name']!r}"
    problem(operator.delete(path), 400, "invalid-request")
    deleting = operator.delete(path, params={"confirm": gone["name"]})
    assert (deleting.status_code, deleting.json()["state"]) == (202, "deleting")
    writer.join(20)
    assert answers[-1] == 401
    problem(operator.post(f"{path}/keys", json={"name": "k", "scopes": ["read"]}), 409, "tenant-deleted")

    ending = end_tenants(service.platform)
    # The worker of this test runs its jobs between the rounds, so none has to be waited for.
    ending = replace(ending, lease_seconds=0)

    def ended() -> bool:
        service.work()
        ending.run()
        return operator.get(f"/tenants/{gone['id']}").json()["state"] == "deleted"

    until(lambda: ended() or None, "the tenant to be deleted")
    report = operator.get(f"/tenants/{gone['id']}").json()["deletion"]
    assert report["name"] == gone["name"]
    assert set(report["rows_left"].values()) == {report["files_left"]} == {0}
    assert report["files_deleted"] > 0
    assert report["bytes_deleted"] > 0
    tables = {table.name for table in metadata.sorted_tables if "tenant_id" in table.c}
    assert set(report["rows_left"]) == tables - {"tenants", "tenant_deletions", "audit"}
    assert list(service.platform.storage.list(gone["id"])) == []
    problem(operator.get(path), 404, "not-found")
    assert gone["id"] not in {each["id"] for each in operator.get("/tenants").json()["items"]}
    assert operator.post("/tenants", json={"name": gone["name"]}).status_code == 201
    found = operator.get("/audit", params={"tenant": gone["id"], "operation": "delete_tenant"}).json()[
        "items"
    ]
    assert [each["status"] for each in found if each["outcome"] == "allowed"] == [202]

    assert its_client.get("/datasets/orders/rows").json()["rows"][:1] == rows_of_other["rows"]
    assert its_client.get("/webhooks").json()["items"]


def test_own_tenant_of_an_operator_cannot_be_deleted(new_client: Callable[..., httpx2.Client]):
    operator = new_client(("operate",))
    name = operator.get("/me").json()["tenant"]["name"]
    answer = operator.delete(f"/tenants/{name}", params={"confirm": name})
    problem(answer, 409, "tenant-protected")
