"""Protobuf messages become the JSON values of the fields that their schema describes."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, duration_pb2, struct_pb2, timestamp_pb2, wrappers_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Kind
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

from app.kernel.codecs.json.json_rows import decode_ndjson
from app.kernel.codecs.messages.proto_schema import ProtoSchema
from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema
from app.kernel.format.schema.schema import Field, Schema

_STANDARD = (timestamp_pb2, duration_pb2, struct_pb2, wrappers_pb2)


def new_file(name: str = "orders.proto") -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3", package="shop")
    file.dependency.extend(module.DESCRIPTOR.name for module in _STANDARD)
    return file


def add(
    message: descriptor_pb2.DescriptorProto, name: str, kind: int, *, repeated: bool = False, of: str = ""
) -> None:
    label = Kind.LABEL_REPEATED if repeated else Kind.LABEL_OPTIONAL
    number = len(message.field) + 1
    message.field.add(name=name, number=number, type=kind, label=label, type_name=of or None)  # type: ignore[arg-type]


def message_class(file: descriptor_pb2.FileDescriptorProto, name: str) -> Any:
    pool = DescriptorPool()
    for module in _STANDARD:
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    return GetMessageClass(pool.FindMessageTypeByName(f"shop.{name}"))


def decoded(schema: ProtoSchema, payload: bytes) -> Any:
    """The value of a message that begins with the path of its type."""
    reader, content = schema.reader(payload)
    return reader.decode(content)


def orders() -> descriptor_pb2.FileDescriptorProto:
    """A file with a field of each kind."""
    file = new_file()
    message = file.message_type.add(name="Order")
    for name in ("bool", "string", "bytes", "int32", "sint64", "uint32", "uint64", "float", "double"):
        add(message, f"a_{name}", getattr(Kind, f"TYPE_{name.upper()}"))
    status = message.enum_type.add(name="Status")
    status.value.add(name="NEW", number=0)
    status.value.add(name="PAID", number=1)
    add(message, "status", Kind.TYPE_ENUM, of=".shop.Order.Status")
    line = message.nested_type.add(name="Line")
    add(line, "item", Kind.TYPE_STRING)
    add(message, "lines", Kind.TYPE_MESSAGE, repeated=True, of=".shop.Order.Line")
    add(message, "first", Kind.TYPE_MESSAGE, of=".shop.Order.Line")
    entry = message.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    add(entry, "key", Kind.TYPE_STRING)
    add(entry, "value", Kind.TYPE_INT32)
    add(message, "counts", Kind.TYPE_MESSAGE, repeated=True, of=".shop.Order.CountsEntry")
    add(message, "at", Kind.TYPE_MESSAGE, of=".google.protobuf.Timestamp")
    add(message, "took", Kind.TYPE_MESSAGE, of=".google.protobuf.Duration")
    add(message, "free", Kind.TYPE_MESSAGE, of=".google.protobuf.Struct")
    add(message, "maybe", Kind.TYPE_MESSAGE, of=".google.protobuf.Int64Value")
    return file


def test_message_is_stored_in_the_fields_that_its_schema_describes() -> None:
    file = orders()
    schema = ProtoSchema(file.SerializeToString())
    members = schema.reader(b"\x00")[0].members or {}
    assert {name: column.type for name, column in members.items()} == {
        "a_bool": "boolean",
        "a_string": "string",
        "a_bytes": "binary",
        "a_int32": "int32",
        "a_sint64": "int64",
        "a_uint32": "uint32",
        "a_uint64": "decimal(20, 0)",
        "a_float": "float",
        "a_double": "double",
        "status": "string",
        "lines": "list<struct<item: string>>",
        "first": "struct<item: string>",
        "counts": "map<string, int32>",
        "at": "timestamp",
        "took": "string",
        "free": "string",
        "maybe": "int64",
    }
    message = message_class(file, "Order")(
        a_bool=True,
        a_string="ł",
        a_bytes=b"\xff",
        a_int32=-1,
        a_sint64=-(2**63),
        a_uint32=2**32 - 1,
        a_uint64=2**64 - 1,
    )
    message.a_float, message.a_double, message.status = 0.5, 0.1, 1
    message.lines.add(item="tea")
    message.counts["x"] = 2
    message.at.FromDatetime(dt.datetime(2026, 11, 21, 10, 0, 0, 7, tzinfo=dt.UTC))
    message.took.FromTimedelta(dt.timedelta(seconds=1.5))
    message.free.update({"k": True})
    row = decoded(schema, b"\x00" + message.SerializeToString())
    numbered = tuple(
        Field(id=number, name=name, type=column.type)
        for number, (name, column) in enumerate(members.items(), 1)
    )
    [stored] = decode_ndjson(msgspec.json.encode(row), Schema(id=1, fields=numbered)).to_pylist()
    assert stored == {
        "a_bool": True,
        "a_string": "ł",
        "a_bytes": b"\xff",
        "a_int32": -1,
        "a_sint64": -(2**63),
        "a_uint32": 2**32 - 1,
        "a_uint64": Decimal(2**64 - 1),
        "a_float": 0.5,
        "a_double": 0.1,
        "status": "PAID",
        "lines": [{"item": "tea"}],
        "first": None,
        "counts": [("x", 2)],
        "at": dt.datetime(2026, 11, 21, 10, 0, 0, 7, tzinfo=dt.UTC),
        "took": "1.500s",
        "free": '{"k": true}',
        "maybe": None,
    }


def test_message_names_its_type_by_a_path() -> None:
    file = new_file()
    outer = file.message_type.add(name="Other")
    add(outer, "x", Kind.TYPE_INT32)
    second = file.message_type.add(name="Second")
    add(second, "unused", Kind.TYPE_INT32)
    inner = second.nested_type.add(name="Inner")
    add(inner, "y", Kind.TYPE_INT32)
    content = message_class(file, "Second.Inner")(y=5).SerializeToString()
    schema = ProtoSchema(file.SerializeToString())
    # Two steps, 1 and 0, as zigzag varints.
    assert decoded(schema, b"\x04\x02\x00" + content) == {"y": 5}
    for path in (b"\x02\x0a", b"\x04\x02\x08", b"\x01", b"", b"\xff\xff\xff\xff\xff\xff", b"\x02"):
        with pytest.raises(BadMessage):
            decoded(schema, path)


def test_schema_imports_others_by_the_name_that_it_uses() -> None:
    imported = new_file("ignored.proto")
    add(imported.message_type.add(name="Line"), "item", Kind.TYPE_STRING)
    file = new_file()
    file.dependency.append("lines.proto")
    add(file.message_type.add(name="Order"), "line", Kind.TYPE_MESSAGE, of=".shop.Line")
    schema = ProtoSchema(file.SerializeToString(), [("lines.proto", imported.SerializeToString())])
    assert schema.reader(b"\x00")[0].type == "struct<line: struct<item: string>>"


def test_schema_that_cannot_be_rows_is_rejected() -> None:
    recursive = new_file()
    add(recursive.message_type.add(name="Tree"), "below", Kind.TYPE_MESSAGE, of=".shop.Tree")
    with pytest.raises(BadMessage, match="contains itself"):
        decoded(ProtoSchema(recursive.SerializeToString()), b"\x00")
    empty = new_file()
    empty.message_type.add(name="Empty")
    add(empty.message_type.add(name="Order"), "empty", Kind.TYPE_MESSAGE, of=".shop.Empty")
    with pytest.raises(BadMessage, match="without fields"):
        decoded(ProtoSchema(empty.SerializeToString()), b"\x02\x02")
    missing = new_file()
    missing.dependency.append("absent.proto")
    for file in (b"\xff\xff", missing.SerializeToString()):
        with pytest.raises(UnsupportedSchema, match="not a Protobuf file"):
            ProtoSchema(file)


def test_bytes_that_are_not_of_the_schema_are_rejected() -> None:
    file = orders()
    schema = ProtoSchema(file.SerializeToString())
    infinite = message_class(file, "Order")(a_double=float("inf")).SerializeToString()
    fine = message_class(file, "Order")(at={"nanos": 1}).SerializeToString()
    late = message_class(file, "Order")(at={"seconds": 2**60}).SerializeToString()
    for content in (b"\xff", infinite, fine, late):
        with pytest.raises(BadMessage):
            decoded(schema, b"\x00" + content)
