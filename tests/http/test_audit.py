"""The audit over HTTP: what is recorded, who reads it, and what is not in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from sqlalchemy import text

from app.access.audit.repository import AuditStore
from app.access.audit.values import UNAUTHENTICATED
from app.access.tenants.values import new_api_key
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from tests.support.exports import EVERY_MINUTE
from tests.support.http import ORDERS, TLS, problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service


class Tenant:
    """A tenant with a client of a key, and its audit."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.id = service.tenants.add_tenant(f"audited-{new_id()}")
        self.made = service.tenants.make_key(self.id, ("read", "write", "manage"), name="first")
        self.client = service.client(self.made.api_key)

    def entries(self, **query: Any) -> list[dict[str, Any]]:
        self.service.api.counts.flush(everything=True)
        items: list[dict[str, Any]] = []
        page = {"next_page_token": None}
        while True:
            answer = self.client.get("/audit", params={"page_size": 2, **query})
            assert answer.status_code == 200, answer.text
            page = answer.json()
            items += page["items"]
            if page["next_page_token"] is None:
                return items
            query["page_token"] = page["next_page_token"]


def counted(entries: list[dict[str, Any]]) -> dict[tuple[str, str | None], dict[str, Any]]:
    """Entries by operation and code. Equal requests are two entries if the process stored counts between them."""
    found: dict[tuple[str, str | None], dict[str, Any]] = {}
    for each in entries:
        same = found.setdefault((each["operation"], each["code"]), each | {"count": 0})
        same["count"] += each["count"]
    return found


@pytest.fixture
def tenant(service: Service) -> Tenant:
    return Tenant(service)


@pytest.fixture
def operator(new_client: Callable[..., httpx2.Client]) -> httpx2.Client:
    return new_client(("operate",))


def test_administrative_request_is_one_entry_with_what_it_changed(tenant: Tenant, operator: httpx2.Client):
    created = tenant.client.post("/keys", json={"name": "loader", "scopes": ["write"]})
    dataset = tenant.client.post("/datasets", json=ORDERS).json()
    compaction = tenant.client.post(f"/datasets/{dataset['id']}/compactions")
    assert operator.patch(f"/tenants/{tenant.id}", json={"state": "active"}).status_code == 200
    resumed, compacted, registered, key = tenant.entries(outcome="allowed")
    assert key["members"] == {"name": "loader", "scopes": ["write"]}
    assert key["resources"] == {"tenant": tenant.id, "key": created.json()["id"]}
    assert (key["operation"], key["method"], key["path"], key["status"]) == (
        "create_key",
        "POST",
        "/keys",
        201,
    )
    assert (key["key_id"], key["key_name"]) == (tenant.made.key_id, "first")
    assert (key["address"], key["count"]) == ("127.0.0.1", 1)
    assert key["request_id"] == created.headers["x-request-id"]
    assert (registered["operation"], registered["resources"]) == (
        "create_dataset",
        {"dataset": dataset["id"]},
    )
    assert compaction.status_code == 202, compaction.text
    assert compacted["resources"] == {"dataset": dataset["id"], "job": compaction.json()["id"]}
    # A tenant sees what operators do to it.
    assert (resumed["operation"], resumed["tenant_id"]) == ("change_tenant", tenant.id)
    assert resumed["key_tenant_id"] != tenant.id


def test_reads_and_writes_are_counted(tenant: Tenant):
    orders = tenant.client.post("/datasets", json=ORDERS).headers["location"]
    for path in (orders, "/datasets/orders"):
        for _ in range(3):
            assert tenant.client.get(f"{path}/changes").status_code == 200
    assert tenant.client.post(f"{orders}/writes", json=upsert({"id": 1})).status_code == 202
    found = counted(tenant.entries(outcome="allowed"))
    read, written = found["read_changes", None], found["create_write", None]
    assert (read["count"], read["resources"], read["key_id"]) == (
        6,
        {"dataset": "orders"},
        tenant.made.key_id,
    )
    assert (written["count"], written["status"], written["members"]) == (1, 202, {})


def test_a_failed_request_names_the_dataset_that_was_found(tenant: Tenant):
    orders = tenant.client.post("/datasets", json=ORDERS).headers["location"]
    assert tenant.client.post(f"{orders}/writes", json={"operation": "sing"}).status_code == 400
    assert tenant.client.post("/datasets/absent/writes", json=upsert({"id": 1})).status_code == 404
    about = {each["status"]: each["resources"] for each in tenant.entries(operation="create_write")}
    assert about == {400: {"dataset": "orders"}, 404: {}}


def test_requests_of_the_console_are_marked(tenant: Tenant):
    tenant.client.get("/datasets")
    with httpx2.Client(base_url=tenant.service.url, trust_env=False, verify=TLS) as browser:
        browser.post("/console/session", data={"api_key": tenant.made.api_key})
        page = browser.get("/console/keys").text
        token = page.split('name="token" value="')[1].split('"')[0]
        form = {"token": token, "name": "made-by-hand", "scopes": "read"}
        assert browser.post("/console/keys", data=form).status_code == 200
        assert browser.get("/console/keys?page_token=x").status_code == 400
        browser.get("/console/datasets")
    tenant.client.post("/keys", json={"name": "made-by-a-program", "scopes": ["read"]})
    of_console, of_api = (counted(tenant.entries(via=via)) for via in ("console", "api"))
    assert {each["via"] for each in of_console.values()} == {"console"}
    assert {each["key_id"] for each in of_console.values()} == {tenant.made.key_id}
    assert of_console["create_key", None]["members"]["name"] == "made-by-hand"
    assert of_console["list_keys", None]["count"] == 1
    assert of_console["list_keys", "invalid-request"]["count"] == 1
    assert ("list_datasets", None) not in of_console
    assert ("read_overview", None) in of_console
    assert of_api["create_key", None]["members"]["name"] == "made-by-a-program"
    assert of_api["list_datasets", None]["count"] == 1
    assert not {operation for operation, _ in of_api} & {"list_keys", "read_overview"}
    problem(tenant.client.get("/audit", params={"via": "mail"}), 400, "invalid-request")


def test_denials_are_counted_in_a_bounded_number_of_entries(tenant: Tenant, service: Service):
    reader = service.tenants.make_key(tenant.id, {"read"}, name="reader")
    gone = service.tenants.make_key(tenant.id, {"read"}, name="gone")
    service.tenants.revoke_key(tenant.id, gone.key_id)
    with service.client(reader.api_key) as client:
        for number in range(30):
            problem(client.post("/keys", json={"name": "k", "scopes": ["read"]}), 403, "forbidden")
            problem(client.get(f"/datasets/absent_{number}"), 404, "not-found")
    with service.client(gone.api_key) as client:
        for _ in range(3):
            problem(client.get("/datasets"), 401, "unauthorized")
    entries = tenant.entries(outcome="denied")
    found = counted(entries)
    assert len(entries) <= 2 * len(found)
    assert len(found) == 3
    assert found["create_key", "forbidden"]["count"] == found["get_dataset", "not-found"]["count"] == 30
    assert found["create_key", "forbidden"]["key_name"] == "reader"
    revoked = found["list_datasets", "unauthorized"]
    assert (revoked["count"], revoked["key_id"], revoked["address"]) == (3, gone.key_id, "127.0.0.1")


def test_unknown_credentials_are_counted_for_operators(service: Service, operator: httpx2.Client):
    def unknown() -> list[dict[str, Any]]:
        service.api.counts.flush(everything=True)
        wanted = {"operation": "list_webhooks", "outcome": "denied"}
        return [
            each
            for each in operator.get("/audit", params=wanted).json()["items"]
            if each["tenant_id"] is None
        ]

    # Of other tests of this process.
    before = sum(each["count"] for each in unknown())
    for _ in range(5):
        with service.client(new_api_key()) as client:
            problem(client.get("/webhooks"), 401, "unauthorized")
    entries = unknown()
    assert sum(each["count"] for each in entries) == before + 5
    assert {each["key_id"] for each in entries} == {None}


def test_tenant_reads_its_own_entries_and_an_operator_those_of_all(
    tenant: Tenant, service: Service, operator: httpx2.Client
):
    other = Tenant(service)
    for each in (tenant, other):
        each.client.post("/datasets", json=ORDERS)
    assert {each["tenant_id"] for each in tenant.entries()} == {tenant.id}
    problem(tenant.client.get("/audit", params={"tenant": other.id}), 403, "forbidden")
    problem(tenant.client.get("/audit", params={"key": "no"}), 400, "invalid-request")
    query = {"operation": "create_dataset", "page_size": 1_000}
    found = {each["tenant_id"] for each in operator.get("/audit", params=query).json()["items"]}
    assert {tenant.id, other.id} <= found
    answer = operator.get("/audit", params={"tenant": other.id, "key": other.made.key_id}).json()
    assert {each["tenant_id"] for each in answer["items"]} == {other.id}
    [entry] = tenant.entries(operation="create_dataset")
    assert tenant.entries(operation="create_dataset", since_time=entry["at"]) == [entry]
    assert tenant.entries(operation="create_dataset", until_time=entry["at"]) == []


def test_act_whose_entry_cannot_be_stored_is_not_carried_out(tenant: Tenant, monkeypatch: pytest.MonkeyPatch):
    def refuse(*_: object) -> None:
        raise Unavailable("no entry")

    monkeypatch.setattr("app.access.audit.repository.add_entry", refuse)
    problem(tenant.client.post("/datasets", json=ORDERS), 503, "unavailable")
    assert tenant.client.get("/datasets").json()["items"] == []
    # Nothing changes in Postgres, and the answer is still not sent.
    monkeypatch.setattr(AuditStore, "add", refuse)
    problem(tenant.client.delete(f"/keys/{tenant.made.key_id}"), 503, "unavailable")
    assert tenant.client.get("/me").status_code == 200
    monkeypatch.undo()
    assert tenant.client.post("/datasets", json=ORDERS).status_code == 201


def test_response_of_an_act_without_a_change_waits_for_its_entry(
    tenant: Tenant, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise Unavailable("no entry")

    lost = tenant.service.tenants.make_key(tenant.id, {"read"})
    path = f"/keys/{lost.key_id}"
    # A key is revoked once.
    assert tenant.client.delete(path).status_code == 204
    with monkeypatch.context() as patch:
        patch.setattr(AuditStore, "add", refuse)
        refused = tenant.client.delete(path)
    assert problem(refused, 503, "unavailable")["instance"] == path
    assert refused.headers["retry-after"]
    assert refused.headers["cache-control"] == "no-store"
    assert tenant.client.delete(path).status_code == 204
    assert [each["outcome"] for each in tenant.entries(operation="revoke_key")] == [
        "allowed",
        "failed",
        "allowed",
    ]


def test_message_is_sent_only_after_its_entry_is_stored(
    tenant: Tenant, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    def refuse(*_: object) -> None:
        raise Unavailable("no entry")

    tenant.client.post("/datasets", json=ORDERS)
    webhook = tenant.client.post("/webhooks", json={"dataset": "orders", "url": receiver.url}).json()
    path = f"/webhooks/{webhook['id']}/tests"
    monkeypatch.setattr(AuditStore, "add", refuse)
    problem(tenant.client.post(path), 503, "unavailable")
    assert receiver.messages == []
    monkeypatch.undo()
    assert tenant.client.post(path).status_code == 200
    assert len(receiver.messages) == 1
    [entry] = tenant.entries(operation="try_webhook", outcome="allowed")
    assert entry["resources"] == {"webhook": webhook["id"]}
    problem(tenant.client.post(f"/webhooks/{new_id()}/tests"), 404, "not-found")
    assert len(tenant.entries(operation="try_webhook", outcome="allowed")) == 1


def test_audit_contains_no_secret(tenant: Tenant, service: Service, operator: httpx2.Client):
    marker = f"secret{new_id()[-12:]}"
    tenant.client.post("/datasets", json=ORDERS)
    hook = {"dataset": "orders", "url": f"http://127.0.0.1:9/{marker}?token={marker}"}
    headers = {"X-Token": marker, "Cookie": marker, "Idempotency-Key": marker}
    made = tenant.client.post("/webhooks", json=hook, headers=headers)
    assert made.status_code == 201, made.text
    rotated = tenant.client.post(f"/webhooks/{made.json()['id']}/rotate-secret").json()
    export = EVERY_MINUTE | {"description": marker}
    tenant.client.post("/datasets/orders/exports", json=export)
    tenant.client.patch(f"/tenants/{marker}", json={"state": marker})
    tenant.client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": marker}))
    tenant.client.get("/datasets/orders/rows", params={"where": f"id = '{marker}'"})
    with service.client(f"hw_{marker:x<43}") as client:
        client.get("/datasets", params={"token": marker})
    new = tenant.client.post("/keys", json={"name": "k", "scopes": ["read"]}).json()
    assert operator.post("/tenants", json={"name": f"t-{new_id()[-12:]}"}).status_code == 201
    service.api.counts.flush()
    with service.tenants._database.administration() as connection:
        rows = connection.execute(text("SELECT row_to_json(audit)::text FROM audit")).scalars().all()
    stored = "\n".join(rows)
    for secret in (marker, made.json()["secret"], rotated["secret"], new["api_key"], tenant.made.api_key):
        assert secret not in stored
    assert any(json.loads(row)["operation"] == "create_webhook" for row in rows)
    assert UNAUTHENTICATED in stored
