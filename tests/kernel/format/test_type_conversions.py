"""Each cell of the table of types: a value arrives equal in every form that has it, or is refused for one reason.

A kind of values without samples fails, and so does a name of a form that no test writes.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import math
import re
import uuid
from collections.abc import Callable
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from google.protobuf import descriptor_pb2, duration_pb2, field_mask_pb2, struct_pb2, timestamp_pb2
from google.protobuf.descriptor_pb2 import FieldDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.json.encode import encode_rows_ndjson
from app.kernel.codecs.json.json_rows import decode_ndjson
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.proto_schema import ProtoSchema
from app.kernel.codecs.messages.reading import BadMessage, UnsupportedSchema
from app.kernel.codecs.messages.records import json_line
from app.kernel.codecs.shape_inference import infer_shapes
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.errors import MalformedBody, SchemaMismatch
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.types import (
    FINER_THAN_MICROS,
    KINDS,
    NOT_FINITE,
    NOT_OF_A_DAY,
    OUTSIDE_YEARS,
    Form,
)
from tests.kernel.codecs.samples import INTERVAL_FILE, arrow_stream, schema_of
from tests.support.shares import share

UTC = dt.UTC
EPOCH = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - numbers of wall-clock times
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
REFUSED = (SchemaMismatch, MalformedBody, BadMessage, UnsupportedSchema)

Read = tuple[str, list[Any]]
"""The type of a new column, and its values."""


def kind_named(name: str) -> Any:
    return next(kind for kind in KINDS if kind.name == name)


# The values of each kind: what a column has of them.

WHOLE: Final = {
    **{
        f"whole numbers of {bits} bits": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)
    },
    **{f"unsigned numbers of {bits} bits": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
# Nanoseconds of 64 bits reach from 1677 to 2262.
MOMENTS: Final = st.datetimes(dt.datetime(1678, 1, 1), dt.datetime(2262, 1, 1))  # noqa: DTZ001 - see EPOCH
ALL_MOMENTS: Final = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999))  # noqa: DTZ001
SECONDS: Final = MOMENTS.map(lambda moment: moment.replace(microsecond=0))
CENTS: Final = st.decimals(-99_999, 99_999, places=2)
TEXTS: Final = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
VALUES: Final[dict[str, st.SearchStrategy[Any]]] = {
    "booleans": st.booleans(),
    **{name: st.integers(*bounds) for name, bounds in WHOLE.items()},
    "real numbers of 32 bits": st.floats(width=16, allow_nan=False, allow_infinity=False),
    "real numbers of 64 bits": st.floats(allow_nan=False, allow_infinity=False),
    "decimals": CENTS,
    "texts": TEXTS,
    "bytes": st.binary(min_size=12, max_size=12),
    "identifiers of 128 bits": st.uuids(),
    "days": st.dates(),
    "points in time, in seconds or milliseconds": SECONDS,
    "points in time, in microseconds or nanoseconds": MOMENTS,
    "wall-clock times, in seconds or milliseconds": SECONDS,
    "wall-clock times, in microseconds or nanoseconds": MOMENTS,
    "times of day": st.times().map(lambda time: time.replace(microsecond=0)),
    "durations": st.integers(-(10**9), 10**9).map(lambda seconds: dt.timedelta(seconds=seconds)),
}
ZONED: Final = "points in time"


def stored(kind: str, value: Any) -> Any:
    """The value as a column has it."""
    match value:
        case uuid.UUID():
            return value.bytes
        case dt.datetime() if kind.startswith(ZONED):
            return value.replace(tzinfo=UTC)
        case dt.time():
            return value.isoformat()
        case dt.timedelta():
            return f"{value // dt.timedelta(seconds=1)}s"
    return value


def ticks(value: Any, unit: str) -> int:
    """The number of a time or a duration in a unit."""
    if isinstance(value, dt.time):
        value = dt.datetime.combine(EPOCH.date(), value)
    span = value if isinstance(value, dt.timedelta) else value - EPOCH
    return int(span // dt.timedelta(microseconds=1) * PER_SECOND[unit] // PER_SECOND["us"])


def unit_of(name: str) -> str:
    """The unit in which a form has a time under the name."""
    found = re.search(r"\[(s|ms|us|ns)|(milli|Milli)|(nano|Nano)|(micro|Micro)", name)
    if found is None:
        return "ms"
    return found[1] or ("ms" if found[2] else "ns" if found[3] else "us")


# Arrow and Parquet

DECIMALS = {
    "decimal32": pa.decimal32,
    "decimal64": pa.decimal64,
    "decimal128": pa.decimal128,
    "decimal256": pa.decimal256,
}
ARROW_TYPES: Final[dict[str, list[pa.DataType]]] = {
    **{
        name: [pa.type_for_alias(name)]
        for name in (
            "bool",
            "halffloat",
            "float",
            "double",
            "string",
            "large_string",
            "binary",
            "large_binary",
            "date32",
            "date64",
        )
    },
    **{
        f"{sign}int{bits}": [pa.type_for_alias(f"{sign}int{bits}")]
        for sign in ("", "u")
        for bits in (8, 16, 32, 64)
    },
    **{name: [kind(7, 2)] for name, kind in DECIMALS.items()},
    "string_view": [pa.string_view()],
    "arrow.json": [pa.json_()],
    "binary_view": [pa.binary_view()],
    "fixed_size_binary": [pa.binary(12)],
    "arrow.uuid": [pa.uuid()],
    **{
        f"timestamp[{unit}{zone}]": [pa.timestamp(unit, "Asia/Tokyo" if zone else None)]
        for unit in PER_SECOND
        for zone in ("", ", tz")
    },
    "time32": [pa.time32("s"), pa.time32("ms")],
    "time64": [pa.time64("us"), pa.time64("ns")],
    "duration": [pa.duration(unit) for unit in PER_SECOND],
    "month_day_nano_interval": [pa.month_day_nano_interval()],
}
PARQUET_TYPES: Final[dict[str, list[pa.DataType]]] = {
    "BOOLEAN": [pa.bool_()],
    **{f"INT({bits})": [pa.type_for_alias(f"int{bits}")] for bits in (8, 16)},
    **{f"INT{bits}": [pa.type_for_alias(f"int{bits}")] for bits in (32, 64)},
    **{f"INT({bits}, unsigned)": [pa.type_for_alias(f"uint{bits}")] for bits in (8, 16, 32, 64)},
    "FLOAT16": [pa.float16()],
    "FLOAT": [pa.float32()],
    "DOUBLE": [pa.float64()],
    "DECIMAL": [pa.decimal128(7, 2)],
    "STRING": [pa.string()],
    "JSON": [pa.json_()],
    "BYTE_ARRAY": [pa.binary()],
    "FIXED_LEN_BYTE_ARRAY": [pa.binary(12)],
    "UUID": [pa.uuid()],
    "DATE": [pa.date32()],
    **{
        f"TIMESTAMP({name}, {zone})": [pa.timestamp(unit, "UTC" if zone == "UTC" else None)]
        for unit, name in (("ms", "millis"), ("us", "micros"), ("ns", "nanos"))
        for zone in ("UTC", "local")
    },
    "INT96": [pa.timestamp("us")],
    "TIME": [pa.time32("ms"), pa.time64("us"), pa.time64("ns")],
}
# PyArrow writes no such columns.
NOT_WRITTEN: Final = {"ENUM", "BSON", "INTERVAL", "month_interval", "day_time_interval"}


def arrow_array(kind: pa.DataType, values: list[Any]) -> pa.Array:
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        numbers = [ticks(value, kind.unit) for value in values]
        width = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return pa.array(numbers, width).view(kind)
    if kind == pa.uuid():
        return pa.array([value.bytes for value in values], pa.uuid())
    if kind == pa.float16():
        return pa.array(values, pa.float32()).cast(kind)
    return pa.array(values, kind)


def read_columnar(form: Format, body: bytes) -> Read:
    types = inferred_types(infer_shapes(form, io.BytesIO(body), Split()))
    rows = pa.concat_tables(iter_tables(form, io.BytesIO(body), schema_of(types)))
    return types["x"], rows.column("x").to_pylist()


def through_arrow(array: pa.Array) -> Read:
    return read_columnar(Format.ARROW, arrow_stream(pa.table({"x": array})))


def through_parquet(array: pa.Array, *, int96: bool = False) -> Read:
    file = io.BytesIO()
    pq.write_table(pa.table({"x": array}), file, use_deprecated_int96_timestamps=int96)
    return read_columnar(Format.PARQUET, file.getvalue())


# Avro and Protobuf

FIXED: Final = {"bytes": 12, "decimal": 5, "uuid": 16}


def avro_type(name: str) -> Any:
    base, _, logical = name.partition(" ")
    mark = {"connect.name": logical} if "debezium" in logical else {"logicalType": logical}
    kind: dict[str, Any] = {"type": base} | (mark if logical else {})
    if logical == "decimal":
        kind |= {"precision": 7, "scale": 2}
    if base == "enum":
        kind |= {"name": "e", "symbols": ["A", "B"]}
    return kind | ({"name": "f", "size": FIXED.get(logical, 12)} if base == "fixed" else {})


def avro_value(name: str, value: Any) -> Any:
    if name.endswith("ZonedTimestamp"):
        return f"{value.isoformat()}Z"
    match value:
        case dt.datetime() | dt.time() | dt.timedelta():
            return ticks(value, unit_of(name))
        case dt.date():
            return (value - EPOCH.date()).days
        case uuid.UUID() if name.startswith("fixed"):
            return value.bytes
    return value


def through_avro(name: str, values: list[Any], kind: Any = None) -> Read:
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind or avro_type(name)}]}
    reader = AvroSchema(json.dumps(schema))
    bare = json.loads(
        re.sub(r'"logicalType": "(time|timestamp|local|date)[^"]*"', '"doc": ""', json.dumps(schema))
    )
    lines = []
    for value in values:
        content = io.BytesIO()
        fastavro.schemaless_writer(content, fastavro.parse_schema(bare), {"x": value})
        lines.append(json_line(reader.decode(content.getvalue())))
    assert reader.members is not None
    return read_lines(reader.members["x"].type, lines)


STANDARD: Final = {
    "google.protobuf.Timestamp": timestamp_pb2,
    "google.protobuf.Duration": duration_pb2,
    "google.protobuf.FieldMask": field_mask_pb2,
    "google.protobuf.Struct": struct_pb2,
    "google.protobuf.Value": struct_pb2,
    "google.protobuf.ListValue": struct_pb2,
}


def through_protobuf(name: str, values: list[Any]) -> Read:
    file = descriptor_pb2.FileDescriptorProto(name="x.proto", syntax="proto3", package="t")
    modules = {module.DESCRIPTOR.name: module for module in STANDARD.values()}
    file.dependency.extend(modules)
    message = file.message_type.add(name="M")
    number = (
        FieldDescriptorProto.TYPE_MESSAGE
        if name in STANDARD
        else getattr(FieldDescriptorProto, f"TYPE_{name.upper()}")
    )
    of = f".{name}" if name in STANDARD else ".t.E" if name == "enum" else None
    message.field.add(name="x", number=1, type=number, label=1, type_name=of)
    if name == "enum":
        symbols = file.enum_type.add(name="E")
        symbols.value.add(name="A", number=0)
        symbols.value.add(name="B", number=1)
    pool = DescriptorPool()
    for module in modules.values():
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    make = GetMessageClass(pool.FindMessageTypeByName("t.M"))
    schema = ProtoSchema(file.SerializeToString())
    lines, text = [], ""
    for value in values:
        one = make()
        fill(one, name, value)
        reader, content = schema.reader(b"\0" + one.SerializeToString())
        assert reader.members is not None
        text = reader.members["x"].type
        lines.append(json_line(reader.decode(content)))
    return read_lines(text, lines)


def fill(message: Any, name: str, value: Any) -> None:
    match name:
        case "google.protobuf.Timestamp" | "google.protobuf.Duration":
            nanos = value if isinstance(value, int) else ticks(value, "ns")
            sign = -1 if nanos < 0 and name.endswith("Duration") else 1
            message.x.seconds, message.x.nanos = (part * sign for part in divmod(nanos * sign, 10**9))
        case "google.protobuf.FieldMask":
            message.x.paths.extend([value])
        case "google.protobuf.Value":
            message.x.string_value = value
        case "google.protobuf.Struct":
            message.x.update({"a": value})
        case "google.protobuf.ListValue":
            message.x.extend([value])
        case _:
            message.x = value


# JSON and CSV: the types of their columns are those of the table.


def read_lines(text: str, lines: list[bytes]) -> Read:
    return text, decode_ndjson(b"\n".join(lines), schema_of({"x": text})).column("x").to_pylist()


def read_cells(text: str, lines: list[bytes]) -> Read:
    cells = [json.loads(line)["x"] for line in lines]
    texts = [json.dumps(cell) if not isinstance(cell, str) else cell for cell in cells]
    quoted = "\n".join('"' + each.replace('"', '""') + '"' for each in texts)
    return text, decode_csv(f"x\n{quoted}\n".encode(), schema_of({"x": text})).column("x").to_pylist()


# The table

CELLS: Final = [
    (kind.name, form, name)
    for kind in KINDS
    for form in (Form.ARROW, Form.PARQUET, Form.AVRO, Form.PROTOBUF)
    for name in kind.names.get(form, ())
    if kind.name in VALUES and name not in NOT_WRITTEN
]
# Texts of symbols, of paths and of JSON.
SYMBOLS: Final = {"enum": ["A", "B"], "google.protobuf.FieldMask": ["a", "b"]}
AS_JSON: Final[dict[str, Callable[[str], str]]] = {
    "google.protobuf.Struct": lambda text: json.dumps({"a": text}, ensure_ascii=False),
    "google.protobuf.Value": lambda text: json.dumps(text, ensure_ascii=False),
    "google.protobuf.ListValue": lambda text: json.dumps([text], ensure_ascii=False),
}


def test_every_kind_has_samples() -> None:
    nested = {"lists", "maps", "structs"}
    # Postgres has those of databases: tests/features/sources/handlers/test_sql.py
    databases = {"other values of a database, as its texts"}
    assert {kind.name for kind in KINDS if kind.type is not None} - nested - databases == VALUES.keys()


def arrived(form: Form, name: str, values: list[Any]) -> list[Read]:
    match form:
        case Form.ARROW:
            return [through_arrow(arrow_array(kind, values)) for kind in ARROW_TYPES[name]]
        case Form.PARQUET:
            return [
                through_parquet(arrow_array(kind, values), int96=name == "INT96")
                for kind in PARQUET_TYPES[name]
            ]
        case Form.AVRO if name == "enum":
            return [through_avro(name, values)]
        case Form.AVRO:
            return [through_avro(name, [avro_value(name, value) for value in values])]
        case Form.PROTOBUF if name == "enum":
            return [through_protobuf(name, ["AB".index(value) for value in values])]
    return [through_protobuf(name, values)]


@share(3)
@pytest.mark.parametrize(("kind", "form", "name"), CELLS)
@given(data=st.data())
def test_values_arrive_equal_in_every_form(kind: str, form: Form, name: str, data: st.DataObject) -> None:
    values = data.draw(
        st.just(SYMBOLS[name]) if name in SYMBOLS else st.lists(VALUES[kind], min_size=1, max_size=3)
    )
    expected = kind_named(kind).type.replace("(p, s)", "(7, 2)")
    for text, found in arrived(form, name, values):
        assert text == expected or (kind, text) == ("bytes", "binary")
        as_text = AS_JSON.get(name, lambda value: value)
        assert [json.loads(each) if name in AS_JSON else each for each in found] == [
            json.loads(as_text(value)) if name in AS_JSON else stored(kind, value) for value in values
        ]


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_json_and_csv_have_the_same_values(kind: str, data: st.DataObject) -> None:
    values = [stored(kind, value) for value in data.draw(st.lists(VALUES[kind], min_size=1, max_size=3))]
    text = kind_named(kind).type.replace("(p, s)", "(7, 2)")
    column = pa.array(values, schema_of({"x": text}).to_arrow().field("x").type)
    lines = encode_rows_ndjson(pa.table({"x": column})).splitlines()
    assert read_lines(text, lines) == (text, values)
    assert read_cells(text, lines) == (text, values)


# Refusals

NS_ODD: Final = 1_500_000_000_000_000_001
FAR_MILLIS: Final = 10**17
OUT: Final[list[tuple[str, str, Callable[[], Read]]]] = [
    *(
        (NOT_FINITE, f"{name} {value}", lambda value=value, read=read: read(value))
        for value in (math.nan, math.inf, -math.inf)
        for name, read in {
            "arrow float": lambda value: through_arrow(pa.array([value], pa.float32())),
            "arrow list": lambda value: through_arrow(pa.array([[value]])),
            "parquet double": lambda value: through_parquet(pa.array([value])),
            "avro float": lambda value: through_avro("float", [value]),
            "protobuf double": lambda value: through_protobuf("double", [value]),
            "csv": lambda value: read_cells("double", [json.dumps({"x": str(value)}).encode()]),
        }.items()
    ),
    *(
        (FINER_THAN_MICROS, name, read)
        for name, read in {
            "arrow": lambda: through_arrow(pa.array([NS_ODD], pa.timestamp("ns"))),
            "arrow zoned": lambda: through_arrow(pa.array([NS_ODD], pa.timestamp("ns", "UTC"))),
            "arrow list": lambda: through_arrow(pa.array([[NS_ODD]], pa.list_(pa.timestamp("ns")))),
            "arrow time": lambda: through_arrow(pa.array([1], pa.time64("ns"))),
            "parquet": lambda: through_parquet(pa.array([NS_ODD], pa.timestamp("ns"))),
            "parquet int96": lambda: through_parquet(pa.array([NS_ODD], pa.timestamp("ns")), int96=True),
            "avro": lambda: through_avro("long timestamp-nanos", [NS_ODD]),
            "avro local": lambda: through_avro("long local-timestamp-nanos", [NS_ODD]),
            "debezium": lambda: through_avro("long io.debezium.time.NanoTimestamp", [NS_ODD]),
            "debezium time": lambda: through_avro("long io.debezium.time.NanoTime", [1]),
            "protobuf": lambda: through_protobuf("google.protobuf.Timestamp", [NS_ODD]),
            "json": lambda: read_lines("timestamp", [b'{"x": "2026-11-21T10:00:00.000000001Z"}']),
            "csv": lambda: read_cells("timestamp_ntz", [b'{"x": "2026-11-21T10:00:00.000000001"}']),
        }.items()
    ),
    *(
        (OUTSIDE_YEARS, name, read)
        for name, read in {
            "arrow s": lambda: through_arrow(pa.array([FAR_MILLIS // 1000], pa.timestamp("s"))),
            "arrow ms": lambda: through_arrow(pa.array([FAR_MILLIS], pa.timestamp("ms", "UTC"))),
            "arrow us": lambda: through_arrow(pa.array([10**18], pa.timestamp("us"))),
            "parquet": lambda: through_parquet(pa.array([FAR_MILLIS], pa.timestamp("ms"))),
            "parquet int96": lambda: through_parquet(pa.array([10**18], pa.timestamp("us")), int96=True),
            "avro": lambda: through_avro("long timestamp-millis", [FAR_MILLIS]),
            "avro micros": lambda: through_avro("long timestamp-micros", [-(10**18)]),
            "avro local": lambda: through_avro("long local-timestamp-micros", [10**18]),
            "protobuf": lambda: through_protobuf("google.protobuf.Timestamp", [10**24]),
            "json": lambda: read_lines("timestamp", [b'{"x": "9999-12-31T23:59:59-01:00"}']),
        }.items()
    ),
    (NOT_OF_A_DAY, "avro", lambda: through_avro("long time-micros", [86_400_000_000])),
    (NOT_OF_A_DAY, "avro millis", lambda: through_avro("int time-millis", [-1])),
    *(
        ("decimal precision must be 1–38, not 40", name, read)
        for name, read in {
            "arrow": lambda: through_arrow(pa.array([1], pa.decimal256(40, 0))),
            "parquet": lambda: through_parquet(pa.array([1], pa.decimal256(40, 0))),
            "avro": lambda: through_avro(
                "", [], {"type": "bytes", "logicalType": "decimal", "precision": 40, "scale": 0}
            ),
        }.items()
    ),
    *(
        (kind_named("one of several types").refused, name, read)
        for name, read in {
            "arrow": lambda: through_arrow(
                pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])])
            ),
            "avro": lambda: through_avro("", [], ["int", "string"]),
        }.items()
    ),
    *(
        ("a map key must be", f"{form} {key.type}", lambda key=key, read=read: read(key))
        for form, read in {
            "arrow": lambda key: through_arrow(pa.MapArray.from_arrays([0, 1], key, pa.array([1]))),
            "parquet": lambda key: through_parquet(pa.MapArray.from_arrays([0, 1], key, pa.array([1]))),
        }.items()
        for key in (pa.array([1.5]), pa.array([[1]]), pa.array([{"a": 1}]))
    ),
    *(
        (kind_named("intervals of months, days and time").refused, "interval", read)
        for read in (
            lambda: through_arrow(pa.array([(1, 2, 3)], pa.month_day_nano_interval())),
            lambda: read_columnar(Format.PARQUET, INTERVAL_FILE),
            lambda: through_avro("fixed duration", [b"\0" * 12]),
        )
    ),
]


@pytest.mark.parametrize(
    ("reason", "name", "read"), OUT, ids=lambda each: each if isinstance(each, str) else ""
)
def test_values_are_refused_for_one_reason(reason: str, name: str, read: Callable[[], Read]) -> None:
    with pytest.raises(REFUSED) as caught:
        read()
    assert reason in str(caught.value), name


# Columns that there are: a value of a wider Arrow type is as good as the same value in JSON.

INTEGER_TYPES: Final = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
NEAR_BOUNDS: Final = st.one_of(
    st.sampled_from(
        [
            0,
            *(
                sign * 2**power + step
                for power in (7, 8, 15, 16, 31, 32, 53, 63, 64)
                for sign in (-1, 1)
                for step in (-1, 0, 1)
            ),
        ]
    ),
    st.integers(-(2**63), 2**64 - 1),
)


def outcome(read: Callable[[], list[Any]]) -> Any:
    """The values, or the reasons why there are none."""
    try:
        return read()
    except SchemaMismatch as error:
        return [each["detail"] for each in error.facts["errors"]]


def through_column(column: str, array: pa.Array) -> list[Any]:
    body = arrow_stream(pa.table({"x": array}))
    return (
        pa.concat_tables(iter_tables(Format.ARROW, io.BytesIO(body), schema_of({"x": column})))
        .column("x")
        .to_pylist()
    )


@pytest.mark.parametrize(
    "column", ["int8", "int16", "int32", "int64", "uint8", "uint32", "decimal(9, 2)", "decimal(20, 0)"]
)
@pytest.mark.parametrize("source", INTEGER_TYPES)
@given(value=NEAR_BOUNDS)
def test_whole_numbers_fit_a_column_as_in_json(column: str, source: str, value: int) -> None:
    kind = pa.type_for_alias(source)
    bits, signed = kind.bit_width, pa.types.is_signed_integer(kind)
    if not -(2 ** (bits - 1)) * signed <= value < 2 ** (bits - signed):
        return
    line = b'{"x": %d}' % value
    assert outcome(lambda: through_column(column, pa.array([value], kind))) == outcome(
        lambda: read_lines(column, [line])[1]
    )


@pytest.mark.parametrize("column", ["decimal(3, 1)", "decimal(9, 2)", "decimal(38, 3)"])
@given(value=st.decimals(-(10**9), 10**9, places=3))
def test_decimals_fit_a_column_as_in_json(column: str, value: decimal.Decimal) -> None:
    for source in (pa.decimal128(30, 3), pa.decimal256(70, 12)):
        found = outcome(lambda source=source: through_column(column, pa.array([value], source)))
        expected = outcome(lambda: read_lines(column, [b'{"x": %s}' % str(value).encode()])[1])
        # The digits after the point are those of the type.
        shorten = re.compile(r"got (-?[0-9]+)(\.[0-9]*?)?0*,")
        assert [shorten.sub(r"got \1\2,", str(each)) for each in found] == [
            shorten.sub(r"got \1\2,", str(each)) for each in expected
        ]


@pytest.mark.parametrize("column", ["timestamp", "timestamp(ms)", "timestamp_ntz", "timestamp_ntz(ms)"])
@pytest.mark.parametrize("unit", PER_SECOND)
@given(
    tick=st.one_of(
        st.integers(-(2**63), 2**63 - 1), st.integers(-(10**7), 10**7).map(lambda each: each * 10**6)
    )
)
def test_times_fit_a_column_as_in_json(column: str, unit: str, tick: int) -> None:
    zone = "UTC" if column.startswith("timestamp(") or column == "timestamp" else None
    found = outcome(lambda: through_column(column, pa.array([tick], pa.timestamp(unit, zone))))
    days = tick // PER_SECOND[unit] // 86_400
    if not -719_162 <= days <= 2_932_896:
        assert OUTSIDE_YEARS in found[0]
        return
    text = str(pa.scalar(tick, pa.timestamp(unit)).cast(pa.string())).replace(" ", "T")
    line = json.dumps({"x": f"{text}Z" if zone else text}).encode()
    expected = outcome(lambda: read_lines(column, [line])[1])
    assert [str(each).replace('"', "") for each in found] == [str(each).replace('"', "") for each in expected]
