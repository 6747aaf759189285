"""Attempts at a message: by workers that die, for receivers that request time, with rows of any size."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from app.core.consumers.followers import ConsumerKind
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.service.deliver import DeliverWebhooks
from tests.support.http import TLS, problem, upsert
from tests.support.receiver import Receiver
from tests.support.service import Service
from tests.support.webhooks import (
    Client,
    Register,
    deliveries,
    feed,
    tenant_of,
    write,
)


class Killed(BaseException):
    """A worker ends here and now."""


class DiesAfterSending:
    """Messages in Postgres, of a worker that is killed when it would note the result of one."""

    def __init__(self, deliveries: DeliveryStore) -> None:
        self._deliveries = deliveries

    def __getattr__(self, name: str) -> Any:
        if name in {"delivered", "failed"}:
            raise Killed
        return getattr(self._deliveries, name)


def test_message_sent_by_a_killed_worker_is_sent_again_with_equal_id_and_bytes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    webhook = register()
    client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"}))
    while service.run_writes.run(tenant_of(client, service), webhook["dataset"]["id"]):
        pass
    handler = service.follow.handlers[ConsumerKind.WEBHOOK]
    assert isinstance(handler, DeliverWebhooks)
    dying = replace(handler, deliveries=DiesAfterSending(handler.deliveries))
    for _ in range(2):
        consumer = service.followers.claim(
            tenant_of(client, service), webhook["dataset"]["id"], "doomed", lease_seconds=0.05
        )
        assert consumer is not None
        with pytest.raises(Killed):
            dying.follow(tenant_of(client, service), consumer)
        time.sleep(0.1)
    write(client, service, {"id": 2, "note": "b"})
    assert receiver.offsets() == [(0, 1), (0, 1), (0, 1), (1, 2)]
    assert len({(message.id, message.body) for message in receiver.messages}) == 2
    assert [delivery["attempts"] for delivery in deliveries(client, webhook)] == [1, 1]


@pytest.mark.parametrize(
    ("status", "after", "low", "high"),
    [(429, "40", 35, 41), (503, "40", 35, 41), (500, "40", -1, 1), (429, "999999999", 86_000, 86_401)],
)
def test_retry_after_of_the_receiver_is_obeyed(
    client: Client,
    service: Service,
    register: Register,
    receiver: Receiver,
    status: int,
    after: str,
    low: float,
    high: float,
) -> None:
    webhook = register()
    receiver.answer(status, headers={"Retry-After": after})
    client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"}))
    while service.run_writes.run(tenant_of(client, service), webhook["dataset"]["id"]):
        pass
    service.run_followers()
    [delivery] = deliveries(client, webhook)
    wait = datetime.fromisoformat(delivery["next_attempt_at"]) - datetime.now(UTC)
    assert low < wait.total_seconds() < high


def test_webhook_of_changes_has_no_alerts(client: Client, register: Register) -> None:
    refusal = problem(client.get(f"/webhooks/{register()['id']}/alerts"), 422, "invalid-webhook")
    assert refusal["detail"] == "the webhook sends changes; register one with `events` of `alerts`"


def test_large_rows_are_delivered_in_messages_of_fewer_changes(
    client: Client, service: Service, register: Register, receiver: Receiver
) -> None:
    register()
    for number in range(3):
        rows = [{"id": number * 4 + i, "note": f"{i}" * 60_000} for i in range(4)]
        assert client.post("/datasets/orders/writes", json=upsert(*rows)).status_code == 202
    # One larger than all messages are to be.
    huge = client.post(
        "/datasets/orders/writes",
        params={"operation": "upsert"},
        content=json.dumps({"id": 99, "note": "x" * 1_500_000}).encode(),
        headers={"Content-Type": "application/x-ndjson"},
    )
    assert huge.status_code == 202, huge.text
    for number in range(3):
        rows = [{"id": 100 + number * 4 + i, "note": f"{i}" * 60_000} for i in range(4)]
        assert client.post("/datasets/orders/writes", json=upsert(*rows)).status_code == 202
    service.work()
    assert receiver.changes == feed(client)
    sizes = [len(message.body) for message in receiver.messages]
    assert len([size for size in sizes if size > 1_100_000]) == 1
    assert 3 <= len(sizes) <= 6


def test_attempts_have_what_was_answered_for_those_that_may_change_the_webhook(
    client: Client, service: Service, register: Register, receiver: Receiver, key: Callable[..., Client]
) -> None:
    webhook = register()
    path = f"/webhooks/{webhook['id']}/attempts"
    assert client.get(path).json() == {"items": []}
    receiver.answer(500, headers={"X-Secret": "s3cret"}, body=b"<b>full</b>\0" + b"x" * 2_000)
    write(client, service, {"id": 1})
    receiver.answer(200, body=b"thanks")
    client.post(f"/webhooks/{webhook['id']}/tests")
    test, *_, first = client.get(path).json()["items"]
    assert (test["delivery"], test["status"], test["error"], test["answer"]) == (None, 200, None, "thanks")
    assert first["delivery"] == deliveries(client, webhook)[0]["id"]
    assert (first["status"], first["answer"]) == (500, "<b>full</b>\N{REPLACEMENT CHARACTER}" + "x" * 1_012)
    assert 0 < first["seconds"] < 15
    assert webhook["created_at"] < first["at"] < test["at"]
    assert "s3cret" not in client.get(path).text
    assert webhook["secret"] not in client.get(path).text
    refused = {scope: key(scope).get(path) for scope in ("read", "write")}
    assert [each.status_code for each in refused.values()] == [403, 403]
    assert key("manage", datasets="others").get(path).status_code == 404
    assert key("manage", datasets="orders").get(path).status_code == 200


@pytest.fixture
def key(client: Client) -> Iterator[Callable[..., Client]]:
    """Makes clients with keys of one scope, for some datasets or all."""
    clients: list[Client] = []

    def make(scope: str, datasets: str = "*") -> Client:
        members = {"name": f"key-{len(clients)}", "scopes": [scope], "grants": [{"datasets": datasets}]}
        response = client.post("/keys", json=members)
        assert response.status_code == 201, response.text
        headers = {"Authorization": f"Bearer {response.json()['api_key']}"}
        clients.append(Client(base_url=client.base_url, trust_env=False, verify=TLS, headers=headers))
        return clients[-1]

    yield make
    for each in clients:
        each.close()
