"""Tokens of recipients in requests: where they are valid, for how long, and what is recorded of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from app.access.tenants.quotas import Quotas
from app.access.tenants.repository.credentials import CredentialStore
from app.access.tenants.values import TenantChange, TenantState
from app.features.sharing.repository.credentials import RecipientStore
from app.features.sharing.values import new_share_token
from app.infra.identifiers import new_id
from tests.support.http import problem
from tests.support.service import Service
from tests.support.waiting import until
from tests.support.webhooks import tenant_of

TABLES = "/delta-sharing/shares/sales/schemas/default/tables"
Issue = Callable[..., dict[str, Any]]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def issue(client: httpx2.Client, orders: str) -> Issue:
    """Makes recipients of a share of `orders`."""
    assert client.post("/shares", json={"name": "sales", "datasets": [{"name": "orders"}]}).status_code == 201

    def run(name: str = "acme", **members: Any) -> dict[str, Any]:
        answer = client.post("/shares/sales/recipients", json={"name": name, **members})
        assert answer.status_code == 201, answer.text
        recipient: dict[str, Any] = answer.json()
        return recipient

    return run


@pytest.fixture
def read(client: httpx2.Client) -> Callable[[str], int]:
    """The status of a list of the tables of the share."""
    return lambda token: client.get(TABLES, headers=bearer(token)).status_code


def test_token_lists_the_tables_of_its_share_and_nothing_else(client: httpx2.Client, issue: Issue) -> None:
    token = issue()["profile"]["bearerToken"]
    answer = client.get(TABLES, headers=bearer(token))
    assert [(each["share"], each["schema"], each["name"]) for each in answer.json()["items"]] == [
        ("sales", "default", "orders")
    ]
    other = client.post("/shares", json={"name": "other", "datasets": [{"name": "orders"}]})
    assert other.status_code == 201
    path = "/delta-sharing/shares/other/schemas/default/tables"
    assert client.get(path, headers=bearer(token)).status_code == 404
    key = client.headers["authorization"].split()[1]
    for text in (key, new_share_token(), "hwr_", f"{token}x"):
        assert client.get(TABLES, headers=bearer(text)).status_code == 401
    for path in ("/datasets/orders", "/datasets/orders/rows", "/datasets/orders/changes", "/me"):
        problem(client.get(path, headers=bearer(token)), 401, "unauthorized")


def test_rotation_and_deletion_end_tokens(
    client: httpx2.Client, issue: Issue, read: Callable[[str], int]
) -> None:
    recipient = issue()
    first = recipient["profile"]["bearerToken"]
    path = f"/shares/sales/recipients/{recipient['id']}"
    assert read(first) == 200
    second = client.post(f"{path}/rotate-token").json()["profile"]["bearerToken"]
    assert (read(first), read(second)) == (200, 200)
    third = client.post(f"{path}/rotate-token", json={"overlap_seconds": 0}).json()["profile"]["bearerToken"]
    until(lambda: (read(first), read(second)) == (401, 401), "the tokens before to end")
    assert read(third) == 200
    assert client.delete(path).status_code == 204
    until(lambda: read(third) == 401, "the token to end")


def test_recipients_of_a_suspended_tenant_read_nothing(
    client: httpx2.Client, issue: Issue, read: Callable[[str], int], service: Service
) -> None:
    token = issue()["profile"]["bearerToken"]
    tenant = tenant_of(client, service)
    assert read(token) == 200
    service.tenants.change(tenant, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    until(lambda: read(token) == 403, "the suspension")
    assert client.get("/shares/sales").status_code == 200
    problem(client.post("/shares/sales/recipients", json={"name": "b"}), 403, "tenant-suspended")
    service.tenants.change(tenant, TenantChange(state=TenantState.ACTIVE))
    until(lambda: read(token) == 200, "the end of the suspension")


def test_a_recipient_sees_a_dataset_under_its_name_in_the_share_until_it_is_deleted(
    client: httpx2.Client, orders: str, issue: Issue
) -> None:
    token = issue()["profile"]["bearerToken"]

    def names() -> list[str]:
        return [each["name"] for each in client.get(TABLES, headers=bearer(token)).json()["items"]]

    etag = client.get(orders).headers["etag"]
    renamed = client.patch(orders, json={"name": "renamed"}, headers={"If-Match": etag})
    assert renamed.status_code == 200, renamed.text
    assert names() == ["orders"]
    assert client.get("/shares/sales").json()["datasets"][0]["name"] == "renamed"
    assert client.delete(orders).status_code == 204
    assert names() == []
    assert client.get("/shares/sales").json()["datasets"] == []


def test_rates_limit_a_recipient_and_all_of_them(
    client: httpx2.Client, issue: Issue, service: Service
) -> None:
    slow = bearer(issue("slow", requests_per_second=1)["profile"]["bearerToken"])
    quick = bearer(issue("quick")["profile"]["bearerToken"])
    statuses = [client.get(TABLES, headers=slow).status_code for _ in range(3)]
    assert statuses[0] == 200
    assert 429 in statuses
    assert [client.get(TABLES, headers=quick).status_code for _ in range(3)] == [200] * 3
    tenant = tenant_of(client, service)
    service.tenants.change(tenant, TenantChange(quotas=Quotas(sharing_requests_per_second=1)))
    until(lambda: client.get(TABLES, headers=quick).status_code == 429, "the quota")
    assert client.get("/shares/sales").status_code == 200


def test_last_use_is_recorded(client: httpx2.Client, issue: Issue, service: Service) -> None:
    recipient = issue()
    path = f"/shares/sales/recipients/{recipient['id']}"
    assert client.get(path).json()["last_used_at"] is None
    RecipientStore(service.database).note_use(tenant_of(client, service), [recipient["id"], new_id()])
    assert client.get(path).json()["last_used_at"] is not None
    token = recipient["profile"]["bearerToken"]
    assert CredentialStore(service.database).authenticate(token) is None
