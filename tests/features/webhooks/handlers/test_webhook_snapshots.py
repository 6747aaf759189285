"""Webhooks that start with the rows of the table, and go on with the changes after them."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import select, update

from app.core.catalog.tables import heads
from app.core.timeline.tables import read_leases
from tests.support.http import problem
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import (
    Client,
    Register,
    deliveries,
    feed,
    make_due,
    patch,
    state_of,
    tenant_of,
    work_until,
    write,
)


def kept(client: Client, service: Service) -> list[str]:
    """The readers that keep a version for longer than its next page."""
    with service.database.tenant(tenant_of(client, service)) as connection:
        readers = connection.execute(select(read_leases.c.reader)).scalars()
        return [reader for reader in readers if reader.startswith("consumer:")]


def ids(changes: list[dict[str, Any]]) -> list[int]:
    return [change["row"]["id"] for change in changes]


def test_webhook_sends_the_rows_of_the_table_and_then_the_changes_each_once(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    write(client, service, *({"id": number, "note": "a"} for number in range(7)))
    write(client, service, {"id": 3, "note": "b"})
    webhook = register(since="snapshot", batch_changes_max=3)
    assert webhook["position"].startswith("snapshot:2:")
    write(client, service, {"id": 1, "note": "c"}, {"id": 9, "note": "d"})
    work_until(service, lambda: state_of(client, webhook)["position"] == 12)

    rows = [message for message in receiver.messages if isinstance(message.data["since"], str)]
    sent = [change for message in rows for change in message.data["changes"]]
    assert [len(message.data["changes"]) for message in rows] == [3, 3, 1]
    assert {change["op"] for change in sent} == {"+A"}
    assert sorted((each["row"]["id"], each["row"]["note"]) for each in sent) == [
        (number, "b" if number == 3 else "a") for number in range(7)
    ]
    # The same rows, in the same order, as readers get them.
    page = client.get("/datasets/orders/changes", params={"since": "snapshot:2:0:0", "limit": 100}).json()
    assert sent == page["changes"]
    assert [message.data["since"] for message in receiver.messages[1:]] == [
        message.data["next_since"] for message in receiver.messages[:-1]
    ]
    after = [change for message in receiver.messages[3:] for change in message.data["changes"]]
    assert after == feed(client, since=9)
    assert rows[-1].data["next_since"] == 9
    found = deliveries(client, webhook)
    assert {each["state"] for each in found} == {"delivered"}
    assert [each["since"] for each in found] == [message.data["since"] for message in receiver.messages[::-1]]
    assert kept(client, service) == []


def test_message_of_rows_that_is_sent_again_has_the_same_bytes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    write(client, service, *({"id": number, "note": "a"} for number in range(8)))
    receiver.answer(200)
    receiver.answer(503, headers={"Retry-After": "3600"})
    receiver.answer(500)
    webhook = register(since="snapshot", batch_changes_max=2, where="id <> 2")
    service.work()
    assert len(kept(client, service)) == 1
    # The rows of the version stay as they were, whatever is written meanwhile.
    write(client, service, *({"id": number, "note": "b"} for number in range(8)))
    make_due(client, service)
    work_until(service, lambda: state_of(client, webhook)["position"] == 24)
    bodies: dict[str, set[bytes]] = {}
    for message in receiver.messages:
        bodies.setdefault(message.id, set()).add(message.body)
    assert {len(each) for each in bodies.values()} == {1}
    assert len(receiver.messages) == len(bodies) + 2
    [*_, first] = deliveries(client, webhook)
    client.post(f"/webhooks/{webhook['id']}/deliveries/{first['id']}/redeliver")
    service.work()
    assert receiver.messages[-1].id == first["id"]
    assert bodies[first["id"]] == {receiver.messages[-1].body}
    rows = {each.id: each for each in receiver.messages}.values()
    sent = [change for each in rows if isinstance(each.data["since"], str) for change in each.data["changes"]]
    assert sorted(ids(sent)) == [0, 1, 3, 4, 5, 6, 7]


def test_webhook_of_an_empty_table_or_without_matching_rows_goes_on_with_the_changes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    empty = register(since="snapshot")
    service.work()
    assert state_of(client, empty)["position"] == 0
    write(client, service, {"id": 1, "note": "a"})
    none = register(since="snapshot", where="id = 5")
    service.work()
    assert state_of(client, none)["position"] == 1
    assert ids(receiver.changes) == [1]
    write(client, service, {"id": 5, "note": "b"})
    work_until(service, lambda: len(receiver.changes) == 3)
    assert ids(receiver.changes) == [1, 5, 5]


def test_webhook_is_paused_when_its_version_is_lost_and_starts_again_with_a_later_one(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    write(client, service, *({"id": number, "note": "a"} for number in range(4)))
    receiver.answer(200, 410)
    webhook = register(since="snapshot", batch_changes_max=2)
    service.work()
    assert state_of(client, webhook)["state"] == "paused"
    write(client, service, {"id": 0, "note": "b"})
    with service.database.tenant(tenant_of(client, service)) as connection:
        connection.execute(read_leases.delete())
        connection.execute(update(heads).values(earliest_version=2))
    patch(client, webhook, state="active")
    service.work()
    found = state_of(client, webhook)
    assert (found["state"], found["error"]["type"]) == ("paused", "/problems/version-expired")
    # A version that has expired is not kept again.
    assert kept(client, service) == []
    moved = patch(client, webhook, state="active", since="snapshot")
    assert moved["position"].startswith("snapshot:2:")
    work_until(service, lambda: state_of(client, webhook)["position"] == 6)
    assert sorted(ids(receiver.changes[-4:])) == [0, 1, 2, 3]


def test_webhook_that_leaves_the_rows_keeps_no_version(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    write(client, service, *({"id": number, "note": "a"} for number in range(4)))
    receiver.answer(410, 410)
    moved, deleted = (register(since="snapshot", batch_changes_max=1) for _ in range(2))
    service.work()
    assert len(kept(client, service)) == 2
    patch(client, moved, since="now")
    client.delete(f"/webhooks/{deleted['id']}")
    assert kept(client, service) == []


@pytest.mark.parametrize(
    ("members", "status", "code"),
    [
        ({"since": "snapshot:9:0:0"}, 409, "offset-ahead"),
        ({"since": "snapshot:x"}, 400, "invalid-request"),
        ({"since": "snapshot", "since_version": 0}, 400, "invalid-request"),
        ({"since": "snapshot", "events": "partitions"}, 422, "invalid-webhook"),
    ],
)
def test_start_that_cannot_be_is_refused(
    client: Client, orders: str, receiver: Receiver, members: dict[str, Any], status: int, code: str
) -> None:
    answer = client.post("/webhooks", json={"dataset": orders.split("/")[-1], "url": receiver.url, **members})
    problem(answer, status, code)
