"""Avro values become the JSON values of the fields that their schema describes."""

from __future__ import annotations

import datetime as dt
import io
import json
import uuid
from decimal import Decimal
from typing import Any

import fastavro
import msgspec
import pytest

from app.kernel.codecs.json.json_rows import decode_ndjson
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema
from app.kernel.format.schema.schema import Field, Schema


def encoded(schema: Any, value: Any) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def record(**types: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "r",
        "fields": [{"name": name, "type": each} for name, each in types.items()],
    }


MOMENT = dt.datetime(2026, 11, 21, 10, 0, 0, 250_000, tzinfo=dt.UTC)
VALUES: list[tuple[Any, Any, str, Any]] = [
    ("boolean", True, "boolean", True),
    ("int", -5, "int32", -5),
    ("long", 2**62, "int64", 2**62),
    ("float", 0.5, "float", 0.5),
    ("double", 0.1, "double", 0.1),
    ("string", "ł", "string", "ł"),
    ("bytes", b"\x00\xff", "binary", b"\x00\xff"),
    ({"type": "fixed", "name": "f", "size": 2}, b"ab", "binary", b"ab"),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "string", "B"),
    (["null", "int"], None, "int32", None),
    (["int", "long"], 2**40, "int64", 2**40),
    ({"type": "array", "items": ["null", "string"]}, ["a", None], "list<string>", ["a", None]),
    ({"type": "map", "values": "double"}, {"k": 1.5}, "map<string, double>", [("k", 1.5)]),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        Decimal("-2.40"),
        "decimal(9, 2)",
        Decimal("-2.40"),
    ),
    (
        {"type": "fixed", "name": "d", "size": 8, "logicalType": "decimal", "precision": 12, "scale": 3},
        Decimal("7.125"),
        "decimal(12, 3)",
        Decimal("7.125"),
    ),
    ({"type": "string", "logicalType": "uuid"}, uuid.UUID(int=7), "uuid", uuid.UUID(int=7).bytes),
    ({"type": "int", "logicalType": "date"}, dt.date(2026, 11, 21), "date", dt.date(2026, 11, 21)),
    ({"type": "long", "logicalType": "timestamp-millis"}, MOMENT, "timestamp(ms)", MOMENT),
    ({"type": "long", "logicalType": "timestamp-micros"}, MOMENT, "timestamp", MOMENT),
    (
        {"type": "long", "logicalType": "local-timestamp-micros"},
        MOMENT.replace(tzinfo=None),
        "timestamp_ntz",
        MOMENT.replace(tzinfo=None),
    ),
    ({"type": "int", "logicalType": "time-millis"}, dt.time(1, 2, 3), "string", "01:02:03"),
    ({"type": "int", "connect.name": "io.debezium.time.Date"}, 20_778, "date", dt.date(2026, 11, 21)),
    (
        {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"},
        1_795_255_200_250_000,
        "timestamp_ntz",
        MOMENT.replace(tzinfo=None),
    ),
    (
        {"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"},
        1_795_255_200_250_000_000,
        "timestamp_ntz",
        MOMENT.replace(tzinfo=None),
    ),
    (
        {"type": "string", "connect.name": "io.debezium.time.ZonedTimestamp"},
        "2026-11-21T10:00:00.25Z",
        "timestamp",
        MOMENT,
    ),
    (
        {
            "type": "record",
            "name": "inner",
            "fields": [{"name": "odd name".replace(" ", "_"), "type": "int"}],
        },
        {"odd_name": 3},
        "struct<odd_name: int32>",
        {"odd_name": 3},
    ),
]


@pytest.mark.parametrize(("kind", "value", "field_type", "stored"), VALUES, ids=lambda each: str(each)[:40])
def test_value_is_stored_in_the_field_that_its_schema_describes(
    kind: Any, value: Any, field_type: str, stored: Any
) -> None:
    schema = AvroSchema(json.dumps(record(x=kind)))
    [(name, column)] = (schema.members or {}).items()
    assert (name, column.type) == ("x", field_type)
    row = schema.decode(encoded(record(x=kind), {"x": value}))
    fields = Schema(id=1, fields=(Field(id=1, name="x", type=column.type),))
    assert decode_ndjson(msgspec.json.encode(row), fields)["x"].to_pylist() == [stored]


def test_schema_of_a_single_value_has_no_members() -> None:
    schema = AvroSchema('"long"')
    assert schema.members is None
    assert schema.decode(encoded("long", 7)) == 7


def test_schema_refers_to_others() -> None:
    inner = json.dumps({"type": "record", "name": "a.Inner", "fields": [{"name": "n", "type": "int"}]})
    outer = json.dumps(record(x="a.Inner", y={"type": "array", "items": "a.Inner"}))
    schema = AvroSchema(outer, [inner])
    assert schema.type == "struct<x: struct<n: int32>, y: list<struct<n: int32>>>"


@pytest.mark.parametrize("null", ["null", ["null"], {"type": "null"}])
def test_fields_that_are_always_null_have_no_column(null: Any) -> None:
    inner = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "a", "type": null}, {"name": "b", "type": "int"}],
    }
    kind = record(id="long", n=null, s=inner)
    schema = AvroSchema(json.dumps(kind))
    assert schema.type == "struct<id: int64, s: struct<b: int32>>"
    assert list(schema.members or {}) == ["id", "s"]
    row = {"id": 7, "n": None, "s": {"a": None, "b": 1}}
    assert schema.decode(encoded(kind, row)) == row


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(next=["null", "r"]), "contains itself"),
        (record(x=["int", "string"]), "x: a column has one type"),
        (record(x="null"), "r: nulls have no type"),
        (record(id="int", x=record(y="null") | {"name": "y"}), "x: nulls have no type"),
        (record(x={"type": "map", "values": "null"}), r"x\.\{\}: nulls have no type"),
        (record(x={"type": "array", "items": "null"}), "take no bytes"),
        (record(x={"type": "array", "items": {"type": "fixed", "name": "z", "size": 0}}), "take no bytes"),
        (
            record(x={"type": "array", "items": {"type": "record", "name": "z", "fields": []}}),
            "take no bytes",
        ),
        (
            record(
                x={
                    "type": "array",
                    "items": record(y={"type": "record", "name": "z", "fields": []}) | {"name": "y"},
                }
            ),
            "take no bytes",
        ),
        (record(), "a record without fields"),
        (
            record(x={"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}),
            "decimal|precision",
        ),
        ({"type": "record"}, "not an Avro schema"),
        ("nothing", "not an Avro schema"),
        ([], "nulls have no type"),
    ],
    ids=lambda each: str(each)[:60],
)
def test_schema_that_cannot_be_rows_is_rejected(schema: Any, reason: str) -> None:
    with pytest.raises(UnsupportedSchema, match=reason):
        AvroSchema(json.dumps(schema))


def test_nesting_is_bounded() -> None:
    schema: Any = "int"
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    with pytest.raises(UnsupportedSchema, match="nested more than"):
        AvroSchema(json.dumps(record(x=schema)))
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(UnsupportedSchema):
        AvroSchema(deep)


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (record(x="string"), b""),
        (record(x="string"), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (record(x="string"), b"\x04\xff\xfe"),
        (record(x="int"), b"\x02\x02"),
        (record(x="double"), encoded(record(x="double"), {"x": float("nan")})),
        (record(x=["null", "float"]), encoded(record(x=["null", "float"]), {"x": float("inf")})),
        (record(x=["null", "int"]), b"\x09\x01"),
        (
            record(x={"type": "long", "logicalType": "timestamp-millis"}),
            encoded(record(x="long"), {"x": 2**60}),
        ),
        (
            record(x={"type": "int", "connect.name": "io.debezium.time.Date"}),
            encoded(record(x="int"), {"x": 2**31 - 1}),
        ),
        (
            record(x={"type": "long", "connect.name": "io.debezium.time.NanoTimestamp"}),
            encoded(record(x="long"), {"x": 1}),
        ),
        (record(x={"type": "enum", "name": "e", "symbols": ["A"]}), b"\x08"),
        (record(x={"type": "array", "items": "int"}), b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
    ],
    ids=lambda each: str(each)[:60],
)
def test_bytes_that_are_not_of_the_schema_are_rejected(schema: Any, payload: bytes) -> None:
    with pytest.raises(BadMessage):
        AvroSchema(json.dumps(schema)).decode(payload)
