"""Arrow values as Avro: read again by the reader of Avro messages, and by fastavro itself, they are the same."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from app.kernel.codecs.messages.avro_output import avro_namespace, avro_schema, avro_values
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.reading import UnsupportedSchema

ZONED = pa.timestamp("us", tz="UTC")
UTC = dt.UTC
LAST = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, UTC).replace(tzinfo=None)
BEFORE_EPOCH = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, UTC).replace(tzinfo=None)
TYPES: list[tuple[str, pa.DataType, list[Any]]] = [
    ("boolean", pa.bool_(), [True, False]),
    ("int32", pa.int8(), [-128, 127]),
    ("int32", pa.int32(), [-(2**31), 2**31 - 1]),
    ("int32", pa.uint16(), [0, 65_535]),
    ("int64", pa.uint32(), [0, 2**32 - 1]),
    ("int64", pa.int64(), [-(2**63), 2**63 - 1]),
    ("float", pa.float32(), [0.5, -1.25]),
    ("double", pa.float64(), [0.1, -1e300]),
    ("string", pa.string(), ["", "Köln \U0001f600"]),
    ("binary", pa.binary(), [b"", bytes(range(256))]),
    ("decimal(9, 2)", pa.decimal128(9, 2), [Decimal("-0.01"), Decimal("9999999.99")]),
    ("decimal(38, 10)", pa.decimal128(38, 10), [Decimal("9" * 28 + "." + "1" * 10)]),
    ("date", pa.date32(), [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
    ("timestamp", ZONED, [dt.datetime(1, 1, 1, tzinfo=UTC), dt.datetime(2026, 11, 24, 1, 2, 3, 4, UTC)]),
    ("timestamp(ms)", pa.timestamp("ms", tz="UTC"), [dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC)]),
    ("timestamp_ntz", pa.timestamp("us"), [LAST]),
    ("timestamp_ntz(ms)", pa.timestamp("ms"), [BEFORE_EPOCH]),
    ("list<int64>", pa.list_(pa.int64()), [[], [1, None, 3]]),
    ("map<string, date>", pa.map_(pa.string(), pa.date32()), [[], [("a", dt.date(2026, 1, 1)), ("b", None)]]),
    (
        "list<struct<key: int32, value: list<string>>>",
        pa.map_(pa.int16(), pa.list_(pa.string())),
        [[(1, ["x", None]), (2, None)]],
    ),
    (
        "struct<a: int64, b: struct<a: list<map<string, int64>>>>",
        pa.struct({"a": pa.int64(), "b": pa.struct({"a": pa.list_(pa.map_(pa.string(), pa.int64()))})}),
        [{"a": 1, "b": {"a": [[("x", 1)], None, []]}}, {"a": None, "b": None}],
    ),
]


def as_avro(kind: pa.DataType, value: Any) -> Any:
    """What fastavro reads for a value of Arrow."""
    if value is None:
        return None
    if pa.types.is_struct(kind):
        return {field.name: as_avro(field.type, value[field.name]) for field in kind}
    if pa.types.is_list(kind):
        return [as_avro(kind.value_type, each) for each in value]
    if pa.types.is_map(kind):
        found = [(key, as_avro(kind.item_type, each)) for key, each in value]
        if pa.types.is_string(kind.key_type):
            return dict(found)
        return [{"key": key, "value": each} for key, each in found]
    return value


@pytest.mark.parametrize(("text", "kind", "values"), TYPES, ids=[str(kind) for _, kind, _ in TYPES])
def test_values_of_every_type_are_read_as_they_were(text: str, kind: pa.DataType, values: list[Any]) -> None:
    rows = pa.array([{"x": value} for value in [*values, None]], pa.struct({"x": kind}))
    schema = avro_schema(rows.type, "shop.Row")
    found = list(avro_values(rows, schema))
    parsed = fastavro.parse_schema(json.loads(schema))
    read = [fastavro.schemaless_reader(io.BytesIO(each), parsed, None)["x"] for each in found]
    assert read == [as_avro(kind, value) for value in rows.field("x").to_pylist()]
    reader, rest = AvroSchema(schema).reader(found[0])
    assert reader.type == f"struct<x: {text}>"
    assert set(reader.decode(rest)) == {"x"}


def test_random_rows_are_read_as_they_were() -> None:
    source = random.Random(75)
    for _ in range(50):
        fields = [(f"f{n}", *source.choice(TYPES)[1:]) for n in range(source.randint(1, 8))]
        kind = pa.struct([pa.field(name, each) for name, each, _ in fields])
        rows = [
            {name: source.choice([*values, None]) for name, _, values in fields}
            for _ in range(source.randint(0, 5))
        ]
        array = pa.array(rows, kind)
        schema = avro_schema(kind, "Row")
        parsed = fastavro.parse_schema(json.loads(schema))
        read = [
            fastavro.schemaless_reader(io.BytesIO(each), parsed, None) for each in avro_values(array, schema)
        ]
        assert read == [as_avro(kind, value) for value in array.to_pylist()]


def test_rows_of_an_envelope_are_one_record() -> None:
    row = pa.struct({"id": pa.int64(), "at": pa.struct({"x": pa.int64()})})
    kind = pa.struct([pa.field("op", pa.string(), nullable=False), ("before", row), ("after", row)])
    schema = json.loads(avro_schema(kind, "shop.Change"))
    before, after = (field["type"] for field in schema["fields"][1:])
    assert (before[1]["name"], before[1]["namespace"]) == ("Row", "shop")
    assert after == ["null", "shop.Row"]
    assert schema["fields"][0] == {"name": "op", "type": "string"}


def test_different_structs_have_different_names() -> None:
    kind = pa.struct(
        {
            "a": pa.struct({"b_c": pa.struct({"x": pa.int64()})}),
            "a_b": pa.struct({"c": pa.struct({"y": pa.string()})}),
        }
    )
    [value] = avro_values(
        pa.array([{"a": {"b_c": {"x": 1}}, "a_b": {"c": {"y": "z"}}}], kind), avro_schema(kind, "Row")
    )
    parsed = fastavro.parse_schema(json.loads(avro_schema(kind, "Row")))
    read = fastavro.schemaless_reader(io.BytesIO(value), parsed, None)
    assert read == {"a": {"b_c": {"x": 1}}, "a_b": {"c": {"y": "z"}}}


@pytest.mark.parametrize("name", ["first name", "1st", "straße", "a.b", ""])
def test_names_that_avro_does_not_have_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedSchema, match="cannot be a name in Avro"):
        avro_schema(pa.struct([pa.field(name, pa.int64())]), "Row")


@pytest.mark.parametrize(
    ("topic", "namespace"),
    [
        ("orders", "orders"),
        ("shop.orders-v1", "shop.orders_v1"),
        ("1.a", "_1.a"),
        ("...", "_"),
        ("a..b", "a.b"),
    ],
)
def test_topics_are_namespaces(topic: str, namespace: str) -> None:
    assert avro_namespace(topic) == namespace
