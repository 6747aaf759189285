"""Sources of topics over HTTP: messages become rows in the feed, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import httpx2
import pytest

from tests.kernel.codecs.messages.test_avro_schema import encoded
from tests.support.http import problem
from tests.support.kafka.broker import Broker
from tests.support.kafka.registry import Registry
from tests.support.kafka.topics import Topic
from tests.support.service import Service
from tests.support.shares import share
from tests.support.waiting import until

Register = Callable[..., "TopicSource"]


@dataclass(frozen=True, kw_only=True)
class TopicSource:
    """A registered source, and the service that runs its rounds."""

    path: str
    client: httpx2.Client
    service: Service

    def found(self) -> dict[str, Any]:
        """The source."""
        source: dict[str, Any] = self.client.get(self.path).json()
        return source

    def run(self) -> dict[str, Any]:
        """Has all that is due done, and a round; returns the source."""
        self.service.work()
        return self.found()

    def round(self) -> dict[str, Any]:
        """Runs a round now; returns the source."""
        answer = self.client.post(f"{self.path}/rounds")
        assert answer.status_code == 202, answer.text
        return self.run()

    def rows(self, dataset: str = "orders") -> list[dict[str, Any]]:
        """The rows of the dataset."""
        rows: list[dict[str, Any]] = self.client.get(f"/datasets/{dataset}/rows").json()["rows"]
        return sorted(rows, key=repr)

    def ops(self, dataset: str = "orders") -> list[str]:
        """The ops of the feed."""
        return [each["op"] for each in self.client.get(f"/datasets/{dataset}/changes").json()["changes"]]


@pytest.fixture
def register(client: httpx2.Client, service: Service) -> Iterator[Register]:
    paths = []

    def new(topic: Topic, *, config: dict[str, Any] | None = None, **members: Any) -> TopicSource:
        source = {
            "name": "in",
            "dataset": "orders",
            "kind": "kafka",
            "mode": "once",
            "config": {"bootstrap_servers": topic.bootstrap, "topic": topic.name, **(config or {})},
            **members,
        }
        answer = client.post("/sources", json=source)
        assert answer.status_code == 201, answer.text
        paths.append(answer.headers["location"])
        return TopicSource(path=paths[-1], client=client, service=service)

    yield new
    # The service of the module would go on with them.
    for path in paths:
        client.delete(path)


def order(number: int, note: str = "a") -> dict[str, Any]:
    return {"id": number, "note": note}


def framed(number: int, schema: Any, value: Any) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + encoded(schema, value)


def test_messages_of_a_topic_become_rows_of_the_feed(
    new_topic: Callable[..., Topic], register: Register, orders: str
) -> None:
    topic = new_topic(partitions=2)
    topic.produce_rows([order(1), order(2)], partition=0)
    topic.produce_rows([order(3)], partition=1)
    source = register(topic)
    found = source.run()
    assert (found["state"], found["last_error"]) == ("finished", None)
    assert found["position"] == {"0": 2, "1": 1}
    assert found["lag"] == {"rows": 0, "seconds": 0.0}
    assert found["last_round"]["rows"]["inserted"] == 3
    assert source.rows() == [order(1), order(2), order(3)]
    assert source.ops() == ["+A"] * 3
    [entry] = source.client.get(f"{orders}/timeline").json()["items"]
    assert entry["parameters"]["position"] == found["position"]


def test_rounds_go_on_where_the_last_one_ended(topic: Topic, register: Register, orders: str) -> None:
    source = register(topic, mode="continuous", max_rows=2)
    source.run()
    topic.produce_rows([order(number) for number in range(5)])
    source.round()
    topic.produce_rows([order(0, "b")])
    found = source.round()
    assert found["position"] == {"0": 6}
    assert source.rows() == [order(0, "b"), *map(order, range(1, 5))]
    assert source.ops() == ["+A"] * 5 + ["-C", "+C"]


def test_position_that_is_changed_is_read_from(topic: Topic, register: Register, events: str) -> None:
    topic.produce(b'{"what": "a"}', b'{"what": "b"}')
    source = register(topic, dataset="events", mode="continuous")
    source.run()
    assert len(source.rows("events")) == 2
    answer = source.client.patch(source.path, json={"position": {"0": 1}})
    assert answer.status_code == 200, answer.text
    source.round()
    assert [row["what"] for row in source.rows("events")] == ["a", "b", "b"]


def test_tombstones_delete_rows(topic: Topic, register: Register, orders: str) -> None:
    topic.produce_pairs([(b"1", b'{"note": "a"}'), (b"2", b'{"note": "b"}'), (b"1", None)])
    source = register(topic, config={"key_format": "json", "key_field": "id"})
    found = source.run()
    assert found["last_error"] is None
    assert source.rows() == [order(2, "b")]
    topic.produce_pairs([(b"2", None)])
    source.round()
    assert source.rows() == []
    assert source.ops()[-1] == "-R"


ROW = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"]}],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"]},
    ],
}


@pytest.mark.parametrize("form", ["json", "avro"])
def test_envelopes_of_debezium_are_applied(
    topic: Topic, register: Register, orders: str, registry: Registry, form: str
) -> None:
    number = registry.register_avro("envelope", ENVELOPE)
    changes: list[dict[str, Any]] = [
        {"op": "r", "before": None, "after": order(1)},
        {"op": "c", "before": None, "after": order(2)},
        {"op": "u", "before": order(1), "after": order(1, "b")},
        # A large value that the update has not changed.
        {"op": "u", "before": None, "after": order(1, "__debezium_unavailable_value")},
        {"op": "d", "before": order(2), "after": None},
    ]
    for change in changes:
        value = {**change, "ts_ms": 5}
        topic.produce(json.dumps(value).encode() if form == "json" else framed(number, ENVELOPE, value))
        if change["op"] == "d":
            topic.produce(None, key=b"2")
    config = {"format": form, "envelope": "debezium"}
    if form == "avro":
        config["registry_url"] = registry.url
    source = register(topic, config=config)
    assert source.run()["last_error"] is None
    assert source.rows() == [order(1, "b")]
    assert source.found()["position"] == {"0": 6}


def test_poison_is_quarantined_with_its_place(topic: Topic, register: Register, orders: str) -> None:
    topic.produce(b'{"id": 1, "note": "a"}', b"\xff{", b'{"id": "x"}', b'{"id": 2, "note": "b"}')
    failing = register(topic)
    found = failing.run()
    assert (found["state"], found["position"]) == ("failed", {})
    assert "message 1 of partition 0" in found["last_error"]["detail"]
    assert failing.rows() == []
    failing.client.delete(failing.path)
    source = register(topic, on_error="quarantine")
    found = source.run()
    assert (found["state"], found["last_round"]["rows"]["quarantined"]) == ("finished", 2)
    assert source.rows() == [order(1), order(2, "b")]
    records = source.client.get(f"{orders}/quarantine").json()["items"]
    details = [error["detail"] for record in records for error in record["errors"]]
    # One cannot be decoded, the other one does not fit the dataset.
    for offset in (1, 2):
        assert any(f"message {offset} of partition 0" in detail for detail in details)


def test_registry_that_is_away_is_waited_for(
    topic: Topic, register: Register, orders: str, registry: Registry
) -> None:
    number = registry.register_avro(f"{topic.name}-value", ROW)
    topic.produce(framed(number, ROW, order(1)))
    registry.failures += [503] * 3
    source = register(topic, config={"format": "avro", "registry_url": registry.url})
    found = source.run()
    assert found["state"] == "active"
    assert "schema registry answered with status 503" in found["last_error"]["detail"]
    source.client.patch(source.path, json={"state": "active"})
    assert source.run()["state"] == "finished"
    assert source.rows() == [order(1)]


@share(3)
def test_broker_that_is_away_is_waited_for(
    topic: Topic, register: Register, orders: str, broker: Broker
) -> None:
    topic.produce_rows([order(1)])
    source = register(topic, mode="continuous")
    assert source.run()["position"] == {"0": 1}
    topic.produce_rows([order(2)])
    broker.kill()
    try:
        source.client.post(f"{source.path}/rounds")
        found = source.run()
    finally:
        broker.start()
    assert found["state"] == "active"
    assert found["last_error"]["type"] == "/problems/source-unavailable"
    assert "Kafka cannot be reached" in found["last_error"]["detail"]
    # A broker that has just started may still refuse some requests.
    until(lambda: source.round()["position"] == {"0": 2}, "the second message", seconds_max=90)
    assert source.found()["last_error"] is None
    assert source.rows() == [order(1), order(2)]


def test_latest_begins_with_what_comes_after_the_first_round(
    topic: Topic, register: Register, orders: str
) -> None:
    topic.produce_rows([order(1)])
    source = register(topic, mode="continuous", config={"start": "latest"})
    assert source.run()["position"] == {"0": 1}
    topic.produce_rows([order(2)])
    source.round()
    assert source.rows() == [order(2)]


def test_dataset_is_registered_with_the_fields_of_the_first_messages(
    topic: Topic, register: Register
) -> None:
    create = {"record_key": ["id"]}
    source = register(topic, dataset="fresh", create=create, mode="continuous", config={"start": "latest"})
    assert source.run()["position"] == {"0": 0}
    topic.produce(b'{"id": 1, "price": 1.5, "tags": ["x"]}')
    source.round()
    dataset = source.client.get("/datasets/fresh").json()
    types = {field["name"]: field["type"] for field in dataset["schema"]["fields"]}
    assert types == {"id": "int64", "price": "double", "tags": "list<string>"}
    assert source.rows("fresh") == [{"id": 1, "price": 1.5, "tags": ["x"]}]


def test_topic_without_a_message_that_can_be_read_is_named(topic: Topic, register: Register) -> None:
    source = register(topic, dataset="fresh", create={"record_key": ["id"]}, mode="continuous")
    found = source.run()
    assert (found["state"], found["last_error"]["type"]) == ("active", "/problems/source-empty")
    assert "waits for a message" in found["last_error"]["detail"]
    topic.produce(b"\xff")
    source.client.patch(source.path, json={"state": "active"})
    found = source.run()
    assert (found["state"], found["position"]) == ("failed", {})
    assert "message 0 of partition 0" in found["last_error"]["detail"]


TYPED = {
    "type": "record",
    "name": "Typed",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "size", "type": "int"},
    ],
}
WIDER = {
    **TYPED,
    "fields": [
        *TYPED["fields"][:3],
        {"name": "size", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
    ],
}


def test_schemas_of_the_registry_are_the_columns_and_change_in_flight(
    topic: Topic, register: Register, registry: Registry
) -> None:
    old, new = registry.register_avro("typed", TYPED), registry.register_avro("typed", WIDER)
    row = {"price": Decimal("2.50"), "at": datetime(2026, 11, 21, tzinfo=UTC), "size": 1}
    topic.produce(framed(old, TYPED, row | {"id": 1}))
    source = register(
        topic,
        dataset="fresh",
        mode="continuous",
        merge_schema=True,
        create={"record_key": ["id"]},
        config={"format": "avro", "registry_url": registry.url, "include": {"offset": "place"}},
    )
    assert source.run()["last_error"] is None

    def types() -> dict[str, str]:
        fields = source.client.get("/datasets/fresh").json()["schema"]["fields"]
        return {field["name"]: field["type"] for field in fields}

    first = {
        "id": "int32",
        "price": "decimal(9, 2)",
        "at": "timestamp(ms)",
        "size": "int32",
        "place": "int64",
    }
    assert types() == first
    values = [row | {"id": 2}, row | {"id": 3, "size": 2**40, "note": "n"}, row | {"id": 4}]
    for number, schema, value in zip((old, new, old), (TYPED, WIDER, TYPED), values, strict=True):
        topic.produce(framed(number, schema, value))
    assert source.round()["last_error"] is None
    assert types() == {**first, "size": "int64", "note": "string"}
    read = [(each["id"], each["size"], each["note"], each["place"]) for each in source.rows("fresh")]
    assert read == [(1, 1, None, 0), (2, 1, None, 1), (3, 2**40, "n", 2), (4, 1, None, 3)]
    assert {(each["price"], each["at"]) for each in source.rows("fresh")} == {
        ("2.50", "2026-11-21T00:00:00Z")
    }


def test_passwords_are_not_shown(client: httpx2.Client, orders: str) -> None:
    config = {
        "bootstrap_servers": "127.0.0.1:9092",
        "topic": "t",
        "security_protocol": "sasl_plaintext",
        "username": "ann",
        "password": "s3cret-1",
        "registry_url": "http://127.0.0.1:8081",
        "registry_username": "ann",
        "registry_password": "s3cret-2",
    }
    source = {"name": "in", "dataset": "orders", "kind": "kafka", "mode": "once", "config": config}
    answer = client.post("/sources", json=source)
    assert answer.status_code == 201, answer.text
    for text in (answer.text, client.get("/sources").text, client.get(answer.headers["location"]).text):
        assert "ann" in text
        assert "s3cret" not in text


def test_config_with_a_fault_is_a_problem_with_a_pointer(client: httpx2.Client, orders: str) -> None:
    source = {"name": "in", "dataset": "orders", "kind": "kafka", "mode": "once", "config": {"topic": "t"}}
    members = problem(client.post("/sources", json=source), 400, "invalid-request")
    assert [each["pointer"] for each in members["errors"]] == ["/config/bootstrap_servers"]
