"""Schemas of a registry: read once, with what they refer to, and only from addresses that are allowed."""

from __future__ import annotations

import pytest
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kind

from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.kafka.registry import RegistryAddress, SchemaRegistry, SchemasOfRound
from app.infra.outbound.addresses import Rules
from app.kernel.codecs.messages.reading import BadMessage
from app.kernel.codecs.messages.records import MessageFormat
from tests.kernel.codecs.messages.test_proto_schema import add, message_class, new_file
from tests.support.kafka.registry import Registry

LOCAL = Rules.of(("127.0.0.0/8",), http=True)
AVRO, PROTOBUF = MessageFormat.AVRO, MessageFormat.PROTOBUF
INNER = {"type": "record", "name": "shop.Inner", "fields": [{"name": "n", "type": "int"}]}
OUTER = {"type": "record", "name": "shop.Outer", "fields": [{"name": "x", "type": "shop.Inner"}]}


def client(registry: Registry, rules: Rules = LOCAL, **credentials: str) -> SchemaRegistry:
    return SchemaRegistry(RegistryAddress(url=f"{registry.url}/", **credentials), rules)


def reference(name: str, subject: str, version: int = 1) -> dict[str, object]:
    return {"name": name, "subject": subject, "version": version}


def test_schema_is_requested_once(registry: Registry) -> None:
    number = registry.register_avro("a", INNER)
    schemas = client(registry)
    assert schemas.schema(number, AVRO) is schemas.schema(number, AVRO)
    assert registry.requests == [f"GET /schemas/ids/{number}"]


def test_schema_has_what_it_refers_to(registry: Registry) -> None:
    registry.register_avro("inner/value", INNER)
    number = registry.register_avro("outer", OUTER, references=[reference("shop.Inner", "inner/value")])
    schema = client(registry).schema(number, AVRO)
    assert schema.reader(b"")[0].type == "struct<x: struct<n: int32>>"


def test_protobuf_schema_has_what_it_imports(registry: Registry) -> None:
    lines = new_file("lines.proto")
    add(lines.message_type.add(name="Line"), "item", Kind.TYPE_STRING)
    registry.register_protobuf("lines", lines.SerializeToString())
    file = new_file()
    file.dependency.append("lines.proto")
    add(file.message_type.add(name="Order"), "line", Kind.TYPE_MESSAGE, of=".shop.Line")
    number = registry.register_protobuf(
        "orders", file.SerializeToString(), references=[reference("lines.proto", "lines")]
    )
    content = message_class(lines, "Line")(item="tea").SerializeToString()
    message = b"\x00\x0a" + bytes([len(content)]) + content
    reader, rest = client(registry).schema(number, PROTOBUF).reader(message)
    assert reader.decode(rest) == {"line": {"item": "tea"}}


def test_references_in_a_circle_and_too_many_are_rejected(registry: Registry) -> None:
    number = registry.register_avro("a", OUTER, references=[reference("shop.Inner", "a")])
    with pytest.raises(BadMessage, match="not supported"):
        client(registry).schema(number, AVRO)
    for count in range(60):
        inner = {"type": "record", "name": f"r{count}", "fields": [{"name": "n", "type": "int"}]}
        registry.register_avro(f"r{count}", inner)
    number = registry.register_avro(
        "many",
        {**OUTER, "name": "many"},
        references=[reference(f"r{each}", f"r{each}") for each in range(60)],
    )
    with pytest.raises(BadMessage, match="more than 50 schemas"):
        client(registry).schema(number, AVRO)
    number = registry.register_avro(
        "lost", {**OUTER, "name": "lost"}, references=[reference("shop.Inner", "none")]
    )
    with pytest.raises(BadMessage, match="which does not exist"):
        client(registry).schema(number, AVRO)


def test_schema_of_another_format_is_rejected(registry: Registry) -> None:
    number = registry.register("a", '{"type": "object"}', "JSON")
    with pytest.raises(BadMessage, match="of type JSON"):
        client(registry).schema(number, AVRO)


def test_failure_is_retried_and_then_reported(registry: Registry) -> None:
    number = registry.register_avro("a", INNER)
    registry.failures += [500, 503]
    assert client(registry).schema(number, AVRO)
    registry.failures += [500] * 3
    with pytest.raises(SourceUnavailable, match="status 500"):
        client(registry).schema(number, AVRO)
    assert registry.failures == []


def test_credentials_are_sent(registry: Registry) -> None:
    number = registry.register_avro("a", INNER)
    registry.credentials = "ann:secret"
    assert client(registry, username="ann", password="secret").schema(number, AVRO)
    with pytest.raises(SourceFailed, match="credentials"):
        client(registry).schema(number, AVRO)
    assert "secret" not in repr(RegistryAddress(url="u", username="ann", password="secret"))


def test_address_that_is_not_allowed_is_refused(registry: Registry) -> None:
    with pytest.raises(SourceFailed, match="is a private address"):
        client(registry, Rules(http=True)).schema(1, AVRO)
    assert registry.requests == []


def test_unknown_ids_are_requested_once_and_bounded(registry: Registry) -> None:
    schemas = SchemasOfRound(client(registry))
    for _ in range(2):
        with pytest.raises(BadMessage, match="no schema 7"):
            schemas(AVRO, 7)
    assert registry.requests == ["GET /schemas/ids/7"]
    for number in range(100, 199):
        with pytest.raises(BadMessage):
            schemas(AVRO, number)
    with pytest.raises(SourceFailed, match="more than 100 schemas"):
        schemas(AVRO, 300)


def test_schema_is_registered_once(registry: Registry) -> None:
    schemas = client(registry)
    numbers = {schemas.register(subject, '"int"', 10.0) for subject in ("a/b", "c", "a/b")}
    assert numbers == {1}
    assert registry.subjects == {"a/b": [1], "c": [1]}
    assert registry.requests == ["POST /subjects/a%2Fb/versions", "POST /subjects/c/versions"]


@pytest.mark.parametrize("status", [409, 422])
def test_schema_that_is_refused_is_no_outage(registry: Registry, status: int) -> None:
    registry.failures += [status]
    with pytest.raises(SourceFailed, match="does not accept the schema: Error in the backend"):
        client(registry).register("a", '"int"', 10.0)


def test_schema_is_registered_after_an_outage(registry: Registry) -> None:
    registry.failures += [500]
    schemas = client(registry)
    with pytest.raises(SourceUnavailable, match="status 500"):
        schemas.register("a", '"int"', 10.0)
    assert schemas.register("a", '"int"', 10.0) == 1
