"""The registry of the tests: its answers are the documented ones, and confluent-kafka's own client works with it.

https://docs.confluent.io/platform/current/schema-registry/develop/api.html
"""

from __future__ import annotations

import json
import warnings
from typing import Any

import httpx2
import pytest

from tests.support.kafka.compatibility import can_read
from tests.support.kafka.registry import Registry

with warnings.catch_warnings():
    # It prefers another HTTP client to the one that is here.
    warnings.simplefilter("ignore")
    from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
    from confluent_kafka.schema_registry.error import SchemaRegistryError

FIRST = '{"type":"record","name":"test","fields":[{"name":"field1","type":"string"}]}'
# Readable with the first one, and the other way round.
SECOND = (
    '{"type":"record","name":"test","fields":[{"name":"field1","type":"string"},'
    '{"name":"field2","type":["null","int"],"default":null}]}'
)
THIRD = '{"type":"record","name":"test","fields":[{"name":"field1","type":"int"}]}'


@pytest.fixture
def client(registry: Registry) -> SchemaRegistryClient:
    return SchemaRegistryClient({"url": registry.url})


def refused(error: pytest.ExceptionInfo[SchemaRegistryError]) -> tuple[int, int]:
    return error.value.http_status_code, error.value.error_code


def test_client_of_confluent_registers_finds_and_reads_schemas(client: SchemaRegistryClient) -> None:
    first = client.register_schema("orders-value", Schema(FIRST, "AVRO"))
    second = client.register_schema("orders-value", Schema(SECOND, "AVRO"))
    assert client.register_schema("other/value", Schema(FIRST, "AVRO")) == first != second
    assert client.get_schema(second).schema_str == SECOND
    assert client.get_subjects() == ["orders-value", "other/value"]
    assert client.get_versions("orders-value") == [1, 2]
    latest = client.get_latest_version("orders-value")
    assert (latest.subject, latest.version, latest.schema_id) == ("orders-value", 2, second)
    assert latest.schema.schema_str == SECOND
    assert client.get_version("orders-value", 1).schema_id == first
    found = client.lookup_schema("orders-value", Schema(FIRST, "AVRO"))
    assert (found.schema_id, found.version) == (first, 1)
    assert sorted((each.subject, each.version) for each in client.get_schema_versions(first)) == [
        ("orders-value", 1),
        ("other/value", 1),
    ]


def test_client_of_confluent_registers_schemas_with_references(client: SchemaRegistryClient) -> None:
    client.register_schema("test", Schema(FIRST, "AVRO"))
    outer = '{"type":"record","name":"outer","fields":[{"name":"inner","type":"test"}]}'
    references = [SchemaReference("test", "test", 1)]
    number = client.register_schema("outer", Schema(outer, "AVRO", references))
    assert client.get_version("outer", 1).schema.references == references
    assert client.lookup_schema("outer", Schema(outer, "AVRO", references)).schema_id == number
    with pytest.raises(SchemaRegistryError) as error:
        client.register_schema("unknown", Schema(outer, "AVRO"))
    assert refused(error) == (422, 42201)


def test_client_of_confluent_reads_and_sets_compatibility(client: SchemaRegistryClient) -> None:
    assert client.get_compatibility() == "BACKWARD"
    client.register_schema("a", Schema(FIRST, "AVRO"))
    assert client.test_compatibility("a", Schema(SECOND, "AVRO"))
    assert not client.test_compatibility("a", Schema(THIRD, "AVRO"))
    with pytest.raises(SchemaRegistryError) as error:
        client.register_schema("a", Schema(THIRD, "AVRO"))
    assert refused(error) == (409, 409)
    with pytest.raises(SchemaRegistryError) as error:
        client.get_compatibility("a")
    assert refused(error) == (404, 40408)
    client.set_compatibility("a", "NONE")
    assert client.get_compatibility("a") == "NONE"
    assert client.register_schema("a", Schema(THIRD, "AVRO"))
    assert client.get_compatibility() == "BACKWARD"
    with pytest.raises(SchemaRegistryError) as error:
        client.set_compatibility("a", "SIDEWAYS")
    assert refused(error) == (422, 42203)


def test_client_of_confluent_deletes_versions_and_subjects(client: SchemaRegistryClient) -> None:
    first = client.register_schema("a", Schema(FIRST, "AVRO"))
    client.register_schema("a", Schema(SECOND, "AVRO"))
    assert client.delete_version("a", 1) == 1
    assert client.get_versions("a") == [2]
    assert client.delete_subject("a") == [2]
    assert client.get_subjects() == []
    # A message that was written with a deleted schema stays readable.
    assert (
        SchemaRegistryClient({"url": client._rest_client.base_urls[0]}).get_schema(first).schema_str == FIRST
    )


def test_missing_things_have_the_documented_errors(client: SchemaRegistryClient) -> None:
    client.register_schema("a", Schema(FIRST, "AVRO"))
    for code, call in (
        (40401, lambda: client.get_versions("none")),
        (40401, lambda: client.lookup_schema("none", Schema(FIRST, "AVRO"))),
        (40402, lambda: client.get_version("a", 9)),
        (40403, lambda: client.get_schema(99)),
        (40403, lambda: client.lookup_schema("a", Schema(SECOND, "AVRO"))),
        (42202, lambda: client.get_version("a", 0)),
        (42201, lambda: client.register_schema("a", Schema('{"type":"bad"}', "AVRO"))),
        (42201, lambda: client.register_schema("a", Schema("{", "AVRO"))),
    ):
        with pytest.raises(SchemaRegistryError) as error:
            call()
        assert refused(error) == (code // 100, code)


@pytest.mark.parametrize(
    ("method", "path", "sent", "status", "expected"),
    [
        ("POST", "/subjects/test/versions", {"schema": FIRST}, 200, {"id": 1}),
        ("GET", "/schemas/ids/1", None, 200, {"schema": FIRST}),
        ("GET", "/schemas/types", None, 200, ["JSON", "PROTOBUF", "AVRO"]),
        ("GET", "/schemas/ids/1/versions", None, 200, [{"subject": "test", "version": 1}]),
        ("GET", "/subjects", None, 200, ["test"]),
        ("GET", "/subjects/test/versions", None, 200, [1]),
        (
            "GET",
            "/subjects/test/versions/1",
            None,
            200,
            {"subject": "test", "version": 1, "id": 1, "schema": FIRST},
        ),
        (
            "POST",
            "/subjects/test",
            {"schema": FIRST},
            200,
            {"subject": "test", "version": 1, "id": 1, "schema": FIRST},
        ),
        (
            "POST",
            "/compatibility/subjects/test/versions/latest",
            {"schema": SECOND},
            200,
            {"is_compatible": True},
        ),
        ("GET", "/config", None, 200, {"compatibilityLevel": "BACKWARD"}),
        ("PUT", "/config", {"compatibility": "FULL"}, 200, {"compatibility": "FULL"}),
        ("PUT", "/config/test", {"compatibility": "NONE"}, 200, {"compatibility": "NONE"}),
        ("GET", "/config/test", None, 200, {"compatibilityLevel": "NONE"}),
        ("DELETE", "/subjects/test/versions/1", None, 200, 1),
        (
            "GET",
            "/subjects/none/versions",
            None,
            404,
            {"error_code": 40401, "message": "Subject 'none' not found."},
        ),
        ("GET", "/schemas/ids/9", None, 404, {"error_code": 40403, "message": "Schema 9 not found"}),
    ],
)
def test_answers_are_the_documented_ones(
    registry: Registry, method: str, path: str, sent: dict[str, Any] | None, status: int, expected: Any
) -> None:
    registry.register("test", FIRST)
    if path == "/config/test" and method == "GET":
        registry.levels["test"] = "NONE"
    answer = httpx2.request(
        method, registry.url + path, content=None if sent is None else json.dumps(sent), trust_env=False
    )
    assert (answer.status_code, answer.json()) == (status, expected)
    assert answer.headers["content-type"] == "application/vnd.schemaregistry.v1+json"


def record(*fields: dict[str, Any], name: str = "r") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("long", "int", True),
        ("int", "long", False),
        ("bytes", "string", True),
        (["null", "int"], "int", True),
        ("int", ["null", "int"], False),
        (["int", "string"], ["string", "int"], True),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
        ({"type": "map", "values": "int"}, {"type": "map", "values": "string"}, False),
        (
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
            {"type": "enum", "name": "e", "symbols": ["a"]},
            True,
        ),
        (
            {"type": "enum", "name": "e", "symbols": ["a"]},
            {"type": "enum", "name": "e", "symbols": ["a", "b"]},
            False,
        ),
        ({"type": "fixed", "name": "f", "size": 2}, {"type": "fixed", "name": "f", "size": 3}, False),
        (record(), record({"name": "x", "type": "int"}), True),
        (record({"name": "x", "type": "int"}), record(), False),
        (record({"name": "x", "type": "int", "default": 0}), record(), True),
        (record(), record(name="other"), False),
        (
            record({"name": "next", "type": ["null", "r"]}),
            record({"name": "next", "type": ["null", "r"]}, {"name": "n", "type": "int"}),
            True,
        ),
    ],
)
def test_schemas_are_resolved_as_avro_specifies(reader: Any, writer: Any, expected: bool) -> None:
    assert can_read(reader, writer) is expected
