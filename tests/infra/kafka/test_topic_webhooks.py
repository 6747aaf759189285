"""Webhooks of topics: each change of the feed is one message, in order by key, whatever fails in between."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from random import Random
from threading import Event
from typing import Any

import pytest

from app.core.consumers.followers import ConsumerKind
from app.features.webhooks.repository.deliveries import DeliveryStore
from app.features.webhooks.service.deliver import DeliverWebhooks
from tests.support.http import problem, upsert
from tests.support.kafka.broker import Broker
from tests.support.kafka.topics import Topic
from tests.support.service import Service
from tests.support.shares import share
from tests.support.waiting import until
from tests.support.webhooks import (
    Client,
    Register,
    deliveries,
    feed,
    patch,
    state_of,
    tenant_of,
    work_until,
    write,
)


class Killed(BaseException):
    """A worker ends here and now."""


class DiesAfterWriting:
    """Messages in Postgres, of a worker that is killed when it would note the result of one."""

    def __init__(self, deliveries: DeliveryStore) -> None:
        self._deliveries = deliveries

    def __getattr__(self, name: str) -> Any:
        if name in {"delivered", "failed"}:
            raise Killed
        return getattr(self._deliveries, name)


def url_of(topic: Topic) -> str:
    return f"kafka://{topic.bootstrap}/{topic.name}"


def values(topic: Topic) -> list[Any]:
    """The values of the messages, by offset of the change."""
    found = [(int(dict(each.headers())["headwater-offset"]), each.value()) for each in topic.committed()]
    return [json.loads(value) for _, value in sorted(found)]


def test_each_change_is_a_message_in_order_by_key(
    client: Client, service: Service, register: Register, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic(partitions=3)
    webhook = register(url=url_of(topic), since="earliest", batch_changes_max=7)
    assert (webhook["secret"], webhook["kafka"]) == ("", None)
    for note in ("a", "b", "c"):
        write(client, service, *({"id": number, "note": note} for number in range(8)))
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert values(topic) == feed(client)
    partitions, offsets = defaultdict(set), defaultdict(list)
    for message in topic.committed():
        change, headers = json.loads(message.value()), dict(message.headers())
        assert message.key() == json.dumps({"id": change["row"]["id"]}, separators=(",", ":")).encode()
        assert headers["headwater-version"] == str(change["version"]).encode()
        partitions[message.key()].add(message.partition())
        offsets[message.key()].append(change["offset"])
    assert {len(each) for each in partitions.values()} == {1}
    assert all(each == sorted(each) for each in offsets.values())
    assert len(set().union(*partitions.values())) > 1
    assert {(each["state"], each["status"]) for each in deliveries(client, webhook)} == {("delivered", None)}


@share(2)
def test_added_partition_gets_messages_and_no_change_is_lost_or_repeated(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    webhook = register(url=url_of(topic), since="earliest", batch_changes_max=7)
    for note, partitions in (("a", 1), ("b", 4)):
        if partitions > 1:
            topic.add_partitions(partitions)
        write(client, service, *({"id": number, "note": note} for number in range(20)))
        work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert values(topic) == feed(client)
    offsets = defaultdict(list)
    for message in topic.committed():
        offsets[message.partition(), message.key()].append(json.loads(message.value())["offset"])
    assert len({partition for partition, _ in offsets}) > 1
    # From then on a key may have another partition; within one the order is that of the feed.
    assert all(each == sorted(each) for each in offsets.values())


@share(2)
def test_two_workers_write_each_change_once_and_in_order(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    webhook = register(url=url_of(topic), since="earliest", batch_changes_max=3)
    place = tenant_of(client, service), webhook["dataset"]["id"]
    done, batches = Event(), {"one": 0, "two": 0}

    def work(owner: str) -> None:
        follow = replace(service.follow, owner=owner)
        while not done.is_set():
            batches[owner] += follow.run(*place)
            # The other one takes the next batch.
            time.sleep(0.05)

    def write_some(number: int) -> bool:
        for note in ("a", "b", "c"):
            rows = [{"id": each, "note": f"{note}{number}"} for each in range(8)]
            client.post("/datasets/orders/writes", json=upsert(*rows)).raise_for_status()
            while service.run_writes.run(*place):
                pass
        until(lambda: state_of(client, webhook)["pending"] == 0, "all changes", seconds_max=60)
        # On a busy machine one of them may write all that there is before the other one runs.
        return all(batches.values())

    with ThreadPoolExecutor(2) as threads:
        workers = [threads.submit(work, owner) for owner in batches]
        try:
            assert any(write_some(number) for number in range(10))
        finally:
            done.set()
    for worker in workers:
        worker.result()
    assert [json.loads(message.value()) for message in topic.committed()] == feed(client)


def test_rows_alone_are_followed_by_a_tombstone(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    register(url=url_of(topic), form="upsert", kafka={"value": "row"})
    write(client, service, {"id": 1, "note": "a"})
    write(client, service, {"id": 1, "note": "b"})
    gone = {"operation": "delete", "source": {"kind": "rows", "rows": [{"id": 1}]}}
    assert client.post("/datasets/orders/writes", json=gone).status_code == 202
    service.work()
    found = [(message.key(), message.value()) for message in topic.committed()]
    assert [key for key, _ in found] == [b'{"id":1}'] * 3
    assert [value and json.loads(value)["note"] for _, value in found] == ["a", "b", None]


def test_batch_of_a_killed_worker_is_not_written_again(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    webhook = register(url=url_of(topic))
    client.post(
        "/datasets/orders/writes",
        json={"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": 1, "note": "a"}]}},
    )
    while service.run_writes.run(tenant_of(client, service), webhook["dataset"]["id"]):
        pass
    handler = service.follow.handlers[ConsumerKind.WEBHOOK]
    assert isinstance(handler, DeliverWebhooks)
    dying = replace(handler, deliveries=DiesAfterWriting(handler.deliveries))
    for _ in range(2):
        consumer = service.followers.claim(
            tenant_of(client, service), webhook["dataset"]["id"], "doomed", lease_seconds=0.05
        )
        assert consumer is not None
        with pytest.raises(Killed):
            dying.follow(tenant_of(client, service), consumer)
        time.sleep(0.1)
    assert len(topic.committed()) == 1
    write(client, service, {"id": 2, "note": "b"})
    assert values(topic) == feed(client)
    assert [each["attempts"] for each in deliveries(client, webhook)] == [1, 1]


def test_topic_gets_the_rows_of_the_table_and_then_the_changes_each_once(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    write(client, service, *({"id": number, "note": "a"} for number in range(5)))
    webhook = register(
        url=url_of(topic), form="upsert", since="snapshot", batch_changes_max=2, kafka={"value": "row"}
    )
    handler = service.follow.handlers[ConsumerKind.WEBHOOK]
    assert isinstance(handler, DeliverWebhooks)
    dying = replace(handler, deliveries=DiesAfterWriting(handler.deliveries))
    tenant_id, dataset_id = tenant_of(client, service), webhook["dataset"]["id"]
    consumer = service.followers.claim(tenant_id, dataset_id, "doomed", lease_seconds=0.05)
    assert consumer is not None
    with pytest.raises(Killed):
        dying.follow(tenant_id, consumer)
    time.sleep(0.1)
    write(client, service, {"id": 1, "note": "b"})
    work_until(service, lambda: state_of(client, webhook)["position"] == 7)
    found = [(json.loads(each.key())["id"], json.loads(each.value())["note"]) for each in topic.committed()]
    assert sorted(found[:5]) == [(number, "a") for number in range(5)]
    assert found[5:] == [(1, "b")]


@share(2)
@pytest.mark.parametrize("form", ["single_event", "retract", "debezium", "delta"])
def test_every_form_has_keys_and_versions(
    client: Client, service: Service, register: Register, topic: Topic, form: str
) -> None:
    register(url=url_of(topic), form=form, since="earliest")
    write(client, service, {"id": 1, "note": "a"})
    write(client, service, {"id": 1, "note": "b"})
    found = topic.committed()
    assert [json.loads(each.value()) for each in found] == feed(client, form=form)
    assert {each.key() for each in found} == {b'{"id":1}'}
    versions = [int(dict(each.headers())["headwater-version"]) for each in found]
    assert versions == sorted(versions)
    assert set(versions) == {1, 2}


# The restart of a broker takes seconds.
@share(6)
def test_changes_wait_while_the_broker_is_down(
    client: Client, service: Service, register: Register, topic: Topic, broker: Broker
) -> None:
    webhook = register(url=url_of(topic))
    broker.kill()
    try:
        assert client.post("/datasets/orders/writes", json=upsert({"id": 1, "note": "a"})).status_code == 202
        assert service.run_waiting_writes()
        # Not `work`: the next attempt may be due before it returns, again and again.
        assert service.run_followers()
        [waiting] = deliveries(client, webhook)
        assert waiting["state"] == "pending"
        assert waiting["error"]
    finally:
        broker.start()
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0, seconds_max=60)
    assert values(topic) == feed(client)
    assert state_of(client, webhook)["state"] == "active"


def test_webhook_of_a_missing_topic_pauses_and_loses_nothing(
    client: Client, service: Service, register: Register, topic: Topic
) -> None:
    webhook = register(url=f"kafka://{topic.bootstrap}/missing")
    answer = client.post(f"/webhooks/{webhook['id']}/tests").json()
    assert (answer["delivered"], answer["error"]) == (False, "there is no topic 'missing'")
    write(client, service, {"id": 1, "note": "a"})
    work_until(service, lambda: state_of(client, webhook)["state"] == "paused")
    error = state_of(client, webhook)["error"]
    assert error["type"].endswith("webhook-given-up")
    assert "there is no topic 'missing'" in error["detail"]
    patch(client, webhook, url=url_of(topic), state="active")
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert values(topic) == feed(client)
    assert client.post(f"/webhooks/{webhook['id']}/tests").json()["delivered"]


def noise(size: int) -> str:
    """A text that compression does not shorten much."""
    return Random(size).randbytes(size // 2).hex()


def test_batch_is_written_if_each_message_is_small_enough(
    client: Client, service: Service, register: Register, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic(settings={"max.message.bytes": "3000"})
    register(url=url_of(topic))
    write(client, service, *({"id": number, "note": noise(1_000 + number)} for number in range(20)))
    assert values(topic) == feed(client)


def test_message_that_is_too_large_pauses_the_webhook_until_there_is_room(
    client: Client, service: Service, register: Register, new_topic: Callable[..., Topic]
) -> None:
    topic = new_topic(settings={"max.message.bytes": "3000"})
    webhook = register(url=url_of(topic))
    write(client, service, {"id": 1, "note": noise(10_000)})
    work_until(service, lambda: state_of(client, webhook)["state"] == "paused")
    assert "Message size too large" in state_of(client, webhook)["error"]["detail"]
    assert topic.committed() == []
    topic.set("max.message.bytes", "100000")
    patch(client, webhook, state="active")
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    assert values(topic) == feed(client)


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"url": "kafka://10.0.0.1:9092/orders"}, "/url"),
        ({"url": "kafka://127.0.0.1:22/orders"}, "/url"),
        ({"url": "kafka://127.0.0.1:9092/or ders"}, "/url"),
        ({"url": "kafka:///orders"}, "/url"),
        ({"url": "http://127.0.0.1:8000/", "kafka": {}}, "/kafka"),
        ({"kafka": {"value": "row"}}, "/kafka/value"),
        ({"kafka": {"username": "u"}}, "/kafka/username"),
        ({"columns": ["note"]}, "/columns"),
        ({"events": "partitions"}, "/events"),
    ],
)
def test_bad_topic_webhooks_are_refused(
    client: Client, orders: str, members: dict[str, Any], pointer: str
) -> None:
    body = {"dataset": "orders", "url": "kafka://127.0.0.1:9092/orders", **members}
    found = problem(client.post("/webhooks", json=body), 422, "invalid-webhook")
    assert [error["pointer"] for error in found["errors"]] == [pointer]


def test_what_would_break_the_order_of_a_topic_is_refused(
    client: Client, register: Register, topic: Topic
) -> None:
    webhook = register(url=url_of(topic))
    for path in ("redeliveries", "rotate-secret"):
        problem(client.post(f"/webhooks/{webhook['id']}/{path}"), 422, "invalid-webhook")
