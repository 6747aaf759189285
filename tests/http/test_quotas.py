"""Quotas, rates and usage over HTTP."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPConnection
from typing import Any

import httpx2
import pytest

from app.features.retention.compose import sample_usage
from app.infra.identifiers import new_id
from tests.support.command_line import command_line, use_service
from tests.support.exports import EVERY_MINUTE, ONCE
from tests.support.http import EVENTS, ORDERS, problem, upsert
from tests.support.service import Service
from tests.support.shares import share
from tests.support.waiting import until

TODAY = datetime.now(UTC).date().isoformat()


@pytest.fixture
def operator(new_client: Callable[..., httpx2.Client]) -> httpx2.Client:
    return new_client(("operate",))


@pytest.fixture
def limited(operator: httpx2.Client, service: Service) -> Iterator[Callable[..., tuple[str, httpx2.Client]]]:
    """Makes tenants with quotas: the path of each and a client of its first key."""
    clients: list[httpx2.Client] = []

    def make(**quotas: Any) -> tuple[str, httpx2.Client]:
        answer = operator.post("/tenants", json={"name": f"q-{new_id()[-12:]}-x", "quotas": quotas})
        assert answer.status_code == 201, answer.text
        assert answer.json()["quotas"] == quotas
        clients.append(service.client(answer.json()["api_key"]))
        return answer.headers["location"], clients[-1]

    yield make
    for client in clients:
        client.close()


def test_each_kind_of_resource_is_limited_and_quotas_change_at_once(operator, limited):
    tenant, client = limited(datasets=2, views=0, webhooks=0, exports=1, consumers=1, queued_jobs=1)
    assert client.post("/datasets", json=ORDERS).status_code == 201
    assert client.post("/datasets", json=EVENTS).status_code == 201
    answer = client.post("/datasets", json=ORDERS | {"name": "third"})
    # It does not pass by itself, so clients need not wait.
    assert "retry-after" not in answer.headers
    facts = problem(answer, 429, "quota-exceeded")
    assert "retry_after_seconds" not in facts
    assert (facts["quota"], facts["limit"], facts["used"]) == ("datasets", 2, 2)
    view = {"name": "orders_view", "sql": "SELECT id, note FROM orders"}
    webhook = {"dataset": "orders", "url": "http://127.0.0.1:9/"}
    assert operator.patch(tenant, json={"quotas": {"datasets": 3}}).status_code == 200
    for path, body, quota in (("/views", view, "views"), ("/webhooks", webhook, "webhooks")):
        assert problem(client.post(path, json=body), 429, "quota-exceeded")["quota"] == quota
    assert client.post("/datasets/orders/exports", json=EVERY_MINUTE).status_code == 202
    refused = client.post("/datasets/orders/exports", json=EVERY_MINUTE, headers={"Idempotency-Key": "e"})
    assert problem(refused, 429, "quota-exceeded")["quota"] == "exports"
    assert client.put("/datasets/orders/consumers/one", json={"offset": 0}).is_success
    refused = client.put("/datasets/orders/consumers/two", json={"offset": 0})
    assert problem(refused, 429, "quota-exceeded")["quota"] == "consumers"
    write = upsert({"id": 1})
    keyed = {"Idempotency-Key": "w"}
    assert client.post("/datasets/orders/writes", json=write, headers=keyed).status_code == 202
    two = [{"dataset": "orders", **write}, {"dataset": "orders_2", **write}]
    assert client.post("/datasets", json=ORDERS | {"name": "orders_2"}).status_code == 201
    assert problem(client.post("/transactions", json={"writes": two}), 429, "quota-exceeded")["used"] == 2
    assert client.post("/datasets/orders/writes", json=write, headers=keyed).status_code in (200, 202)
    uses = {each["quota"]: each for each in operator.get(f"{tenant}/quotas").json()["items"]}
    assert uses["datasets"] == {"quota": "datasets", "limit": 3, "used": 3}
    assert (uses["exports"]["used"], uses["consumers"]["used"], uses["queued_jobs"]["used"]) == (1, 1, 1)
    assert uses["running_jobs"] == {"quota": "running_jobs", "limit": None, "used": 0}
    changed = operator.patch(
        tenant, json={"quotas": {"exports": None, "webhooks": 1, "views": None, "datasets": None}}
    )
    assert changed.json()["quotas"] == {"consumers": 1, "queued_jobs": 1, "webhooks": 1}
    assert client.post("/webhooks", json=webhook).status_code == 201
    assert client.post(
        "/datasets/orders/exports", json=EVERY_MINUTE, headers={"Idempotency-Key": "e"}
    ).is_success
    wrong = problem(operator.patch(tenant, json={"quotas": {"data_sets": 3}}), 400, "invalid-request")
    assert "did you mean 'datasets'?" in wrong["detail"]
    problem(operator.patch(tenant, json={}), 400, "invalid-request")
    for members in ({"datasets": -1}, {"weight": 0.009}, {"weight": 5e-324}):
        problem(operator.patch(tenant, json={"quotas": members}), 400, "invalid-request")


def test_ended_exports_resume_within_the_quota(limited, service):
    _, client = limited(exports=1)
    client.post("/datasets", json=ORDERS)
    ended, other = (_ended_export(client, service) for _ in range(2))
    client.post("/datasets/orders/writes", json=upsert({"id": 1}))
    service.work()
    run = client.post(f"{ended}/runs")
    assert run.status_code == 202, run.text
    assert problem(client.post(f"{other}/runs"), 429, "quota-exceeded")["quota"] == "exports"
    etag = {"If-Match": client.get(other).headers["etag"]}
    resumed = client.patch(
        other, json={"schedule": EVERY_MINUTE["schedule"], "state": "active"}, headers=etag
    )
    assert problem(resumed, 429, "quota-exceeded")["quota"] == "exports"
    assert client.get(other).json()["state"] == "ended"
    service.work()
    assert client.post(f"{other}/runs").status_code == 202


def _ended_export(client: httpx2.Client, service: Service) -> str:
    made = client.post("/datasets/orders/exports", json=ONCE)
    service.work()
    path: str = made.headers["location"]
    assert client.get(path).json()["state"] == "ended"
    return path


def test_upload_beyond_the_stored_bytes_is_refused_before_its_body(limited):
    _, client = limited(storage_bytes=0)
    client.post("/datasets", json=ORDERS)
    with closing(HTTPConnection(client.base_url.host, client.base_url.port, timeout=10)) as connection:
        connection.putrequest("POST", "/datasets/orders/uploads")
        connection.putheader("Authorization", client.headers["authorization"])
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Content-Length", "1000000")
        connection.endheaders()
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["quota"]) == (429, "storage_bytes")


def test_rate_of_a_tenant_is_limited_and_others_are_not(operator, limited, client):
    tenant, slow = limited(requests_per_second=3)
    answers = [slow.get("/me") for _ in range(12)]
    refused = [answer for answer in answers if answer.status_code == 429]
    # Three at once, and one more in each third of a second that the requests took.
    assert 3 <= len(answers) - len(refused) <= 8
    facts = problem(refused[0], 429, "rate-limited")
    assert (facts["quota"], facts["limit"], facts["limited"]) == ("requests_per_second", 3, "tenant")
    assert refused[0].headers["retry-after"] == "1"
    assert refused[0].headers["ratelimit-policy"] == '"tenant";q=3;w=1'
    assert refused[0].headers["ratelimit"] == '"tenant";r=0;t=1'
    assert re.fullmatch(r'"tenant";r=2;t=1', answers[0].headers["ratelimit"])
    assert slow.get("/health/live").status_code == 200
    assert all(client.get("/me").status_code == 200 for _ in range(12))
    assert "ratelimit" not in client.get("/me").headers
    assert operator.patch(tenant, json={"quotas": {"requests_per_second": None}}).status_code == 200
    until(lambda: "ratelimit" not in slow.get("/me").headers, "the end of the limit")
    assert all(slow.get("/me").status_code == 200 for _ in range(12))


def test_key_has_a_rate_of_its_own(client, service):
    made = client.post("/keys", json={"name": "slow", "scopes": ["read"], "requests_per_second": 1})
    assert made.json()["requests_per_second"] == 1
    with service.client(made.json()["api_key"]) as slow:
        answers = [slow.get("/me") for _ in range(4)]
    assert answers[0].headers["ratelimit-policy"] == '"key";q=1;w=1'
    assert problem(answers[1], 429, "rate-limited")["limited"] == "key"
    assert all(client.get("/me").status_code == 200 for _ in range(5))


def test_waiting_requests_are_limited(limited, client):
    _, few = limited(streams=1)
    for each in (few, client):
        assert each.post("/datasets", json=ORDERS).status_code == 201
    with few.stream("GET", "/datasets/orders/changes/events") as events:
        assert events.status_code == 200
        waiting = {"since": 0, "feed": "longpoll", "timeout": 1}
        refused = few.get("/datasets/orders/changes", params=waiting)
        assert problem(refused, 429, "quota-exceeded")["quota"] == "streams"
        problem(few.get("/datasets/orders/changes", params={"feed": "longpoll"}), 429, "quota-exceeded")
        assert few.get("/datasets/orders/changes", params={**waiting, "timeout": 0}).status_code == 200
        assert few.get("/datasets/orders/changes", params={"timeout": 1}).status_code == 200
        assert client.get("/datasets/orders/changes", params=waiting).status_code == 200
    until(lambda: few.get("/datasets/orders/changes", params=waiting).is_success, "the end of the stream")


@share(2)
def test_usage_is_listed_by_day_dataset_and_key(operator, limited, service):
    tenant, client = limited(storage_bytes=1)
    dataset = client.post("/datasets", json=ORDERS).json()["id"]
    assert client.post("/datasets/orders/writes", json=upsert({"id": 1}, {"id": 2})).status_code == 202
    service.work()
    sample_usage(service.platform).run()
    refused = problem(client.post("/datasets/orders/writes", json=upsert({"id": 3})), 429, "quota-exceeded")
    assert (refused["quota"], refused["limit"]) == ("storage_bytes", 1)
    deletion = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 1}]}}
    assert client.post("/datasets/orders/writes", json=deletion).status_code == 202

    def requests() -> int:
        return sum(each["requests"] for each in client.get("/usage").json()["items"])

    until(lambda: requests() >= 4, "the counted requests", seconds_max=20)
    [day] = client.get("/usage", params={"from": TODAY}).json()["items"]
    assert (day["day"], day["rows_written"], day["changes"]) >= (TODAY, 2, 2)
    assert day["stored_bytes"] == refused["used"]
    assert day["bytes_written"] <= day["stored_bytes"]
    assert day["job_seconds"] > 0
    assert day["egress_bytes"] > 0
    [of_dataset] = client.get("/usage", params={"by": "dataset"}).json()["items"]
    assert (of_dataset["dataset_id"], of_dataset["rows_written"], of_dataset["requests"]) == (
        dataset,
        2,
        None,
    )
    assert (of_dataset["dataset"], of_dataset["dataset_deleted_at"]) == ("orders", None)
    [of_key] = client.get("/usage", params={"by": "key"}).json()["items"]
    assert of_key["key_id"] == client.get("/me").json()["key"]["id"]
    assert operator.get(f"{tenant}/usage", params={"by": "dataset"}).json()["items"] == [of_dataset]
    assert client.delete("/datasets/orders").status_code == 204
    [of_deleted] = operator.get(f"{tenant}/usage", params={"by": "dataset"}).json()["items"]
    assert (of_deleted["dataset"], of_deleted["rows_written"]) == ("orders", of_dataset["rows_written"])
    assert of_deleted["dataset_deleted_at"] is not None
    assert client.get("/usage", params={"to": "2020-01-01"}).json() == {"items": [], "next_page_token": None}
    problem(client.get("/usage", params={"from": "2020-01-02", "to": "2020-01-01"}), 400, "invalid-request")
    problem(client.get(f"{tenant}/quotas"), 403, "forbidden")


def test_concurrent_requests_do_not_exceed_a_quota(limited):
    _, client = limited(webhooks=3)
    assert client.post("/datasets", json=ORDERS).status_code == 201
    statuses: list[int] = []

    def make() -> None:
        webhook = {"dataset": "orders", "url": "http://127.0.0.1:9/"}
        statuses.append(client.post("/webhooks", json=webhook).status_code)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(statuses) == [201] * 3 + [429] * 5


def test_operator_changes_and_prints_quotas_with_the_command_line(
    operator, limited, service, monkeypatch, capsys
):
    tenant, client = limited(datasets=2)
    assert client.post("/datasets", json=ORDERS).status_code == 201
    use_service(monkeypatch, service.url, operator.headers["authorization"].removeprefix("Bearer "))
    headwater = command_line(capsys)
    name = operator.get(tenant).json()["name"]
    lines = headwater(
        "tenants", "quotas", name, "--set", "datasets=10", "--set", "weight=0.5", "-o", "table"
    ).cells
    assert lines[:2] == [["QUOTA", "LIMIT", "USED"], ["datasets", "10", "1"]]
    assert ["weight", "0.5", "-"] in lines
    items = headwater("tenants", "quotas", name, "--remove", "datasets").items
    assert {"quota": "datasets", "limit": None, "used": 1} in items
    assert (
        "did you mean 'datasets'" in headwater("tenants", "quotas", name, "--set", "dataset=1", fails=1).err
    )
    assert (
        "expected a quota and its limit"
        in headwater("tenants", "quotas", name, "--set", "datasets", fails=2).err
    )
    assert client.post("/datasets/orders/writes", json=upsert({"id": 1})).status_code == 202
    service.work()
    assert headwater("usage", "--tenant", name, "--by", "dataset", "-o", "table").cells[1][1] == "orders"
    assert client.delete("/datasets/orders").status_code == 204
    line = headwater("usage", "--tenant", name, "--by", "dataset", "-o", "table").cells[1]
    assert " ".join(line[1:3]) == "orders (deleted)"
