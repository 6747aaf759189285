"""What tests of webhooks do with them over HTTP."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx2
from sqlalchemy import func, update

from app.access.tenants.repository.credentials import CredentialStore
from app.core.consumers.tables import consumers
from app.features.webhooks.tables import webhook_deliveries
from tests.support.http import upsert
from tests.support.service import Service

Client = httpx2.Client
Register = Callable[..., dict[str, Any]]


def write(client: Client, service: Service, *rows: dict[str, Any]) -> None:
    assert client.post("/datasets/orders/writes", json=upsert(*rows)).status_code == 202
    service.work()


def state_of(client: Client, webhook: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/webhooks/{webhook['id']}").json()
    return found


def patch(client: Client, webhook: dict[str, Any], **members: Any) -> dict[str, Any]:
    etag = client.get(f"/webhooks/{webhook['id']}").headers["etag"]
    answer = client.patch(f"/webhooks/{webhook['id']}", json=members, headers={"If-Match": etag})
    assert answer.status_code == 200, answer.text
    changed: dict[str, Any] = answer.json()
    return changed


def deliveries(client: Client, webhook: dict[str, Any], **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    while True:
        page = client.get(f"/webhooks/{webhook['id']}/deliveries", params=query).json()
        items += page["items"]
        if page["next_page_token"] is None:
            return items
        query["page_token"] = page["next_page_token"]


def work_until(service: Service, done: Callable[[], Any], seconds_max: float = 20) -> None:
    """Works, also on what is due only in a moment."""
    deadline = time.monotonic() + seconds_max
    while not done():
        assert time.monotonic() < deadline
        service.work()
        time.sleep(0.02)


def make_due(client: Client, service: Service) -> None:
    """Makes the next attempts of all deliveries due, however long they were to wait."""
    with service.database.tenant(tenant_of(client, service)) as connection:
        connection.execute(update(webhook_deliveries).values(next_attempt_at=func.clock_timestamp()))
        connection.execute(update(consumers).values(wake_at=func.clock_timestamp()))


def feed(client: Client, **query: Any) -> list[Any]:
    changes: list[Any] = client.get("/datasets/orders/changes", params=query).json()["changes"]
    return changes


def tenant_of(client: Client, service: Service) -> str:
    """The id of the client's tenant."""
    principal = CredentialStore(service.database).authenticate(client.headers["authorization"].split()[1])
    assert principal is not None
    return principal.tenant_id
