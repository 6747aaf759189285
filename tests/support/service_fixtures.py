"""A tenant for each test, and what it has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import httpx2
import pytest

from tests.support import derived_views
from tests.support.exports import EVERY_MINUTE, write
from tests.support.http import EVENTS, ORDERS, upsert
from tests.support.receiver import Receiver, receiving
from tests.support.schema_changes import TRIPS
from tests.support.service import SCOPES, Service
from tests.support.webhooks import Register

_numbers = count(1)


@pytest.fixture
def new_client(service: Service) -> Iterator[Callable[..., httpx2.Client]]:
    """Makes clients of new tenants."""
    clients: list[httpx2.Client] = []

    def make(scopes: tuple[str, ...] = SCOPES) -> httpx2.Client:
        clients.append(service.client(service.new_key(f"tenant-{next(_numbers)}", scopes)))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(new_client: Callable[..., httpx2.Client]) -> httpx2.Client:
    """A client of a tenant of its own."""
    return new_client()


@pytest.fixture
def orders(client: httpx2.Client) -> str:
    """The path of a dataset with a key."""
    answer = client.post("/datasets", json=ORDERS)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def events(client: httpx2.Client) -> str:
    """The path of an append-only dataset."""
    answer = client.post("/datasets", json=EVENTS)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def trips(client: httpx2.Client) -> str:
    """The path of a dataset with columns of many types."""
    answer = client.post("/datasets", json=TRIPS)
    assert answer.status_code == 201, answer.text
    return answer.headers["location"]


@pytest.fixture
def feed(client: httpx2.Client, orders: str, service: Service) -> str:
    """The path of a feed of four changes: two appends, then a correction."""
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "a"}, {"id": 2, "note": "b"}))
    service.work()
    client.post(f"{orders}/writes", json=upsert({"id": 1, "note": "c"}))
    service.work()
    return f"{orders}/changes"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def register(client: httpx2.Client, orders: str, receiver: Receiver) -> Iterator[Register]:
    """Registers webhooks of `orders`, which end with the test."""
    made: list[str] = []

    def run(**members: Any) -> dict[str, Any]:
        answer = client.post("/webhooks", json={"dataset": "orders", "url": receiver.url, **members})
        assert answer.status_code == 201, answer.text
        made.append(answer.headers["location"])
        webhook: dict[str, Any] = answer.json()
        return webhook

    yield run
    for path in made:
        client.delete(path)


@pytest.fixture
def new_view(client: httpx2.Client, orders: str, service: Service) -> Callable[..., dict[str, Any]]:
    """Registers a view of `orders`, with what computes its rows."""
    return lambda *settings, **more: derived_views.register_view(client, service, *settings, **more)


@pytest.fixture
def write_notes(
    client: httpx2.Client, orders: str, service: Service
) -> Callable[[dict[int, str | None]], None]:
    """Writes notes of `orders` by id, None to delete, and has all that follows done."""
    return lambda notes: derived_views.write_notes(client, service, orders, notes)


@pytest.fixture
def export(client: httpx2.Client, orders: str, service: Service) -> str:
    """The path of an export with a schedule that has run once, over the changes [0, 1)."""
    write(client, service, orders, upsert({"id": 1, "note": "a"}))
    path = client.post(f"{orders}/exports", json=EVERY_MINUTE).headers["location"]
    service.work()
    assert client.get(path).json()["offset"] == 1
    return path
