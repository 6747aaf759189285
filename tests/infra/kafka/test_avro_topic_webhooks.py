"""Webhooks that write Avro to topics: the messages are read back, by fastavro and by a source, as what was sent."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import fastavro
import pytest

from tests.support.http import problem
from tests.support.kafka.registry import Registry
from tests.support.kafka.topics import Topic
from tests.support.service import Service
from tests.support.shares import share
from tests.support.webhooks import Client, deliveries, make_due, patch, state_of, work_until

FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "at", "type": "timestamp"},
    {"name": "meta", "type": "struct<region: string, tags: list<string>>"},
    {"name": "price", "type": "decimal(9, 2)"},
    {"name": "counts", "type": "map<string, int64>"},
]
WIDE = {"name": "wide", "schema": {"fields": FIELDS}, "record_key": ["id", "meta.region"]}
Rows = list[dict[str, Any]]


def row(number: int, price: str = "1.50") -> dict[str, Any]:
    return {
        "id": number,
        "at": f"2026-11-24T00:00:{number:02}.000250Z",
        "meta": {"region": "eu", "tags": ["a", None]},
        "price": price,
        "counts": {"x": number, "y": None},
    }


class Wide:
    """A dataset with columns of many types, and its webhooks."""

    def __init__(self, client: Client, service: Service) -> None:
        self.client = client
        self.service = service
        self.paths: list[str] = []
        answer = client.post("/datasets", json=WIDE)
        assert answer.status_code == 201, answer.text

    def register(self, topic: Topic, registry: Registry, **members: Any) -> dict[str, Any]:
        kafka = {"format": "avro", "registry_url": registry.url, **members.pop("kafka", {})}
        url = f"kafka://{topic.bootstrap}/{topic.name}"
        body = {"dataset": "wide", "url": url, "since": "earliest", "kafka": kafka, **members}
        answer = self.client.post("/webhooks", json=body)
        assert answer.status_code == 201, answer.text
        self.paths.append(answer.headers["location"])
        webhook: dict[str, Any] = answer.json()
        return webhook

    def write(self, *rows: dict[str, Any], operation: str = "upsert") -> None:
        body = {"operation": operation, "source": {"kind": "rows", "rows": list(rows)}}
        answer = self.client.post("/datasets/wide/writes", json=body)
        assert answer.status_code == 202, answer.text
        self.service.work()

    def feed(self, **query: Any) -> list[Any]:
        changes: list[Any] = self.client.get("/datasets/wide/changes", params=query).json()["changes"]
        return changes


@pytest.fixture
def wide(client: Client, service: Service) -> Iterator[Wide]:
    made = Wide(client, service)
    yield made
    for path in made.paths:
        client.delete(path)


def decoded(registry: Registry, payload: bytes | None) -> Any:
    """What the message holds, by the schema that it names."""
    if payload is None:
        return None
    assert payload[0] == 0
    schema = json.loads(registry.schemas[int.from_bytes(payload[1:5], "big")]["schema"])
    source = io.BytesIO(payload[5:])
    value = fastavro.schemaless_reader(source, fastavro.parse_schema(schema), None)
    assert not source.read()
    return value


def as_json(value: Any) -> Any:
    """A value as the JSON of the feed has it."""
    return json.loads(
        json.dumps(value, default=lambda each: str(each).replace("+00:00", "Z").replace(" ", "T"))
    )


@share(3)
@pytest.mark.parametrize("form", ["two_event", "single_event", "retract", "upsert", "debezium", "delta"])
def test_changes_of_every_form_are_those_of_the_feed(
    wide: Wide, new_topic: Callable[..., Topic], registry: Registry, form: str
) -> None:
    topic = new_topic(partitions=2)
    webhook = wide.register(topic, registry, form=form, batch_changes_max=3)
    wide.write(row(1), row(2))
    wide.write(row(1, "2.50"))
    wide.write(row(2), operation="delete")
    work_until(wide.service, lambda: state_of(wide.client, webhook)["pending"] == 0)
    found = []
    for message in topic.committed():
        change, headers = decoded(registry, message.value()), dict(message.headers())
        rows = [change.get(name) for name in ("row", "after", "before")]
        of = next(each for each in rows if each is not None)
        assert decoded(registry, message.key()) == {"id": of["id"], "meta": {"region": "eu"}}
        found.append((int(headers["headwater-version"]), as_json(change)))
    expected = wide.feed(form=form)
    assert sorted((change for _, change in found), key=repr) == sorted(as_json_feed(expected), key=repr)
    assert [version for version, _ in sorted(found, key=lambda each: each[0])][-1] == 3
    assert set(registry.subjects) == {f"{topic.name}-key", f"{topic.name}-value"}
    # However many batches there are, there is one schema of each, and it is registered once.
    assert [len(each) for each in registry.subjects.values()] == [1, 1]
    assert len(registry.requests) == 2


def as_json_feed(changes: list[Any]) -> list[Any]:
    """The changes, with times as Avro has them: in milliseconds even where these are zero."""

    def same(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: same(each) for name, each in value.items()}
        if isinstance(value, str) and value.endswith("Z") and "." in value:
            whole, fraction = value[:-1].split(".")
            return f"{whole}.{fraction:0<6}Z"
        return value

    return [same(each) for each in changes]


def test_source_of_the_topic_has_the_same_rows(
    wide: Wide, topic: Topic, registry: Registry, client: Client, service: Service
) -> None:
    webhook = wide.register(topic, registry, form="upsert", kafka={"value": "row"}, batch_changes_max=4)
    wide.write(*(row(number) for number in range(10)))
    wide.write(*(row(number, "7.25") for number in range(0, 10, 2)))
    wide.write(row(3), row(4), operation="delete")
    work_until(service, lambda: state_of(client, webhook)["pending"] == 0)
    copy = {**WIDE, "name": "copy"}
    assert client.post("/datasets", json=copy).status_code == 201
    config = {
        "bootstrap_servers": topic.bootstrap,
        "topic": topic.name,
        "format": "avro",
        "key_format": "avro",
        "registry_url": registry.url,
    }
    answer = client.post(
        "/sources", json={"name": "in", "dataset": "copy", "kind": "kafka", "mode": "once", "config": config}
    )
    assert answer.status_code == 201, answer.text
    service.work()
    source = client.get(answer.headers["location"]).json()
    assert (source["state"], source["last_error"]) == ("finished", None)
    one, other = (
        sorted(client.get(f"/datasets/{name}/rows").json()["rows"], key=repr) for name in ("wide", "copy")
    )
    assert one == other
    assert len(one) == 8


def test_new_columns_are_a_version_of_the_schema(wide: Wide, topic: Topic, registry: Registry) -> None:
    wide.register(topic, registry, form="upsert", kafka={"value": "row"})
    wide.write(row(1))
    etag = wide.client.get("/datasets/wide").headers["etag"]
    change = {"changes": [{"kind": "add", "field": {"name": "extra", "type": "int64"}}]}
    answer = wide.client.patch("/datasets/wide", json=change, headers={"If-Match": etag})
    assert answer.status_code == 200, answer.text
    wide.write({**row(2), "extra": 5})
    one, other = (decoded(registry, message.value()) for message in topic.committed())
    assert "extra" not in one
    assert other["extra"] == 5
    numbers = registry.subjects[f"{topic.name}-value"]
    older, newer = (json.loads(registry.schemas[number]["schema"]) for number in numbers)
    # A reader with the later schema reads messages of the earlier one.
    value = topic.committed()[0].value()[5:]
    read = fastavro.schemaless_reader(
        io.BytesIO(value), fastavro.parse_schema(older), fastavro.parse_schema(newer)
    )
    assert (read["id"], read["extra"]) == (1, None)


def test_changes_wait_while_the_registry_is_down(wide: Wide, topic: Topic, registry: Registry) -> None:
    webhook = wide.register(topic, registry)
    # More than it is requested meanwhile: on a slow machine the write comes back after the next attempt.
    registry.failures += [503] * 100
    wide.write(row(1))
    [waiting] = deliveries(wide.client, webhook)
    assert (waiting["state"], waiting["error"]) == ("pending", "the schema registry answered with status 503")
    registry.failures.clear()
    make_due(wide.client, wide.service)
    work_until(wide.service, lambda: state_of(wide.client, webhook)["pending"] == 0)
    assert [decoded(registry, each.value())["offset"] for each in topic.committed()] == [0]
    assert state_of(wide.client, webhook)["state"] == "active"


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (409, "the schema registry does not accept the schema: Error in the backend"),
        (422, "the schema registry does not accept the schema: Error in the backend"),
        (401, "the schema registry does not accept the credentials (status 401)"),
    ],
)
def test_schema_that_the_registry_refuses_pauses_the_webhook(
    wide: Wide, topic: Topic, registry: Registry, status: int, reason: str
) -> None:
    webhook = wide.register(topic, registry)
    registry.failures += [status] * 3
    wide.write(row(1))
    work_until(wide.service, lambda: state_of(wide.client, webhook)["state"] == "paused")
    assert reason in state_of(wide.client, webhook)["error"]["detail"]
    patch(wide.client, webhook, state="active")
    work_until(wide.service, lambda: state_of(wide.client, webhook)["pending"] == 0)
    assert len(topic.committed()) == 1


def test_registry_alone_gets_its_password(wide: Wide, topic: Topic, registry: Registry) -> None:
    registry.credentials = "ann:opensesame"
    webhook = wide.register(
        topic, registry, kafka={"registry_username": "ann"}, registry_password="opensesame"
    )
    wide.write(row(1))
    work_until(wide.service, lambda: state_of(wide.client, webhook)["pending"] == 0)
    assert "opensesame" not in json.dumps([webhook, state_of(wide.client, webhook)])
    etag = wide.client.get(f"/webhooks/{webhook['id']}").headers["etag"]
    for kafka in (
        {"format": "avro", "registry_url": "http://127.0.0.1:9999", "registry_username": "ann"},
        {"format": "avro", "registry_url": registry.url},
    ):
        answer = wide.client.patch(
            f"/webhooks/{webhook['id']}", json={"kafka": kafka}, headers={"If-Match": etag}
        )
        found = problem(answer, 422, "invalid-webhook")
        assert [each["pointer"] for each in found["errors"]] == ["/kafka/registry_username"]


AVRO = {"format": "avro", "registry_url": "http://127.0.0.1:8081"}


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"kafka": {"format": "avro"}}, "/kafka/registry_url"),
        ({"kafka": {**AVRO, "format": "json"}}, "/kafka/registry_url"),
        ({"kafka": {**AVRO, "registry_url": "http://10.0.0.1:8081"}}, "/kafka/registry_url"),
        ({"kafka": {**AVRO, "registry_url": "ftp://127.0.0.1/"}}, "/kafka/registry_url"),
        ({"kafka": {"registry_username": "u"}, "registry_password": "p"}, "/kafka/registry_username"),
        ({"kafka": {**AVRO, "registry_username": "u"}}, "/registry_password"),
        ({"kafka": AVRO, "registry_password": "p"}, "/registry_password"),
        ({"registry_password": "p"}, "/registry_password"),
        ({"kafka": AVRO, "dataset": "odd"}, "/kafka/format"),
        ({"kafka": AVRO, "url": "kafka://127.0.0.1:9092"}, "/url"),
    ],
)
def test_bad_avro_webhooks_are_refused(client: Client, members: dict[str, Any], pointer: str) -> None:
    fields = [{"name": "id", "type": "int64"}, {"name": "first name", "type": "string"}]
    for name, schema in (("odd", fields), ("even", fields[:1])):
        made = {"name": name, "schema": {"fields": schema}, "record_key": ["id"]}
        assert client.post("/datasets", json=made).status_code == 201
    body = {"dataset": "even", "url": "kafka://127.0.0.1:9092/orders", **members}
    found = problem(client.post("/webhooks", json=body), 422, "invalid-webhook")
    assert [error["pointer"] for error in found["errors"]] == [pointer]
