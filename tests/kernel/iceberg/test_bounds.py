"""Bounds and counts of columns: the bytes of Iceberg's single values, whole or absent."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import DataType, FlatType, parse_type
from app.kernel.iceberg.bounds import bounded_fields, encoded_values, minimal_bytes
from app.kernel.iceberg.manifests import data_manifest
from tests.kernel.iceberg.tables import avro_records, data_entry, dataset, form_of

EPOCH = dt.datetime.fromisoformat("1970-01-01")
MICROSECOND = dt.timedelta(microseconds=1)
MOMENTS = st.datetimes()


def decimal_value(content: bytes) -> decimal.Decimal:
    number = int.from_bytes(content, "big", signed=True)
    return decimal.Decimal(number).scaleb(-10, context=decimal.Context(prec=60))


# Values of a type, and how Iceberg reads their bytes.
READ: dict[str, tuple[st.SearchStrategy[Any], Any]] = {
    "boolean": (st.booleans(), lambda content: content != b"\x00"),
    "int8": (st.integers(-128, 127), lambda content: struct.unpack("<i", content)[0]),
    "uint16": (st.integers(0, 2**16 - 1), lambda content: struct.unpack("<i", content)[0]),
    "uint32": (st.integers(0, 2**32 - 1), lambda content: struct.unpack("<q", content)[0]),
    "int64": (st.integers(-(2**63), 2**63 - 1), lambda content: struct.unpack("<q", content)[0]),
    "float": (st.floats(width=32, allow_nan=False), lambda content: struct.unpack("<f", content)[0]),
    "double": (st.floats(allow_nan=False), lambda content: struct.unpack("<d", content)[0]),
    "string": (st.text(st.characters(exclude_categories=["Cs"]), max_size=64), bytes.decode),
    "binary": (st.binary(max_size=48), bytes),
    "uuid": (st.binary(min_size=16, max_size=16), bytes),
    "date": (st.dates(), lambda content: EPOCH.date() + dt.timedelta(days=struct.unpack("<i", content)[0])),
    "timestamp": (
        MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
        lambda content: EPOCH.replace(tzinfo=dt.UTC) + struct.unpack("<q", content)[0] * MICROSECOND,
    ),
    "timestamp_ntz": (MOMENTS, lambda content: EPOCH + struct.unpack("<q", content)[0] * MICROSECOND),
    "decimal(38, 10)": (st.decimals(-(10**27), 10**27, places=10), decimal_value),
}


def flat(text: str) -> FlatType:
    kind: DataType = parse_type(text)
    assert isinstance(kind, FlatType)
    return kind


@pytest.mark.parametrize("kind", READ)
@given(data=st.data())
def test_stored_bounds_are_read_as_the_same_values(kind: str, data: st.DataObject) -> None:
    values, read = READ[kind]
    drawn = data.draw(st.lists(values, max_size=6))
    # Bounds are stored as JSON.
    bounds = msgspec.json.decode(
        msgspec.json.encode([stored_bound(v, flat(kind)) if finite(v) else "inf" for v in drawn])
    )
    for value, bound, content in zip(drawn, bounds, encoded_values(flat(kind), bounds), strict=True):
        assert content is None if bound is None or not finite(value) else read(content) == value


def finite(value: Any) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    ("value", "content"),
    [(0, b"\0"), (127, b"\x7f"), (128, b"\0\x80"), (-128, b"\x80"), (-129, b"\xff\x7f"), (-1, b"\xff")],
)
def test_decimals_have_as_few_bytes_as_hold_them(value: int, content: bytes) -> None:
    assert minimal_bytes(value) == content


@pytest.mark.parametrize(
    ("kind", "bound"),
    [
        ("int32", 2**31),
        ("int32", "7"),
        ("int32", True),
        ("int64", 1.5),
        ("double", "NaN"),
        ("float", 1e300),
        ("date", "soon"),
        ("date", 7),
        ("timestamp", 7),
        ("timestamp", "soon"),
        ("decimal(9, 2)", "many"),
        ("string", 7),
        ("binary", "?"),
        ("uuid", "00"),
        ("boolean", 1),
    ],
)
def test_bound_that_is_not_of_the_type_is_left_out(kind: str, bound: Any) -> None:
    assert encoded_values(flat(kind), [bound]) == [None]


def published(statistics: ColumnStatistics, kind: str = "string", file_kind: str | None = None) -> Any:
    """What a manifest has of a column of 10 rows: its count, its nulls, and both bounds."""
    form = form_of(dataset({"x": kind}))
    schema = Schema(id=1, fields=(Field(id=1, name="x", type=file_kind or kind),))
    form = msgspec.structs.replace(form, schemas={1: schema})
    _, [record] = avro_records(
        data_manifest(form, [data_entry(0, statistics={"1": statistics})], 1, 0).content
    )
    names = ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    maps = [record["data_file"][name] for name in names]
    return [None if each is None else each[0]["value"] for each in maps]


@pytest.mark.parametrize(
    ("minimum", "maximum", "null_count", "facts"),
    [
        ("a", "b", 0, [10, 0, b"a", b"b"]),
        ("a", None, 0, [None] * 4),
        (None, "b", 0, [None] * 4),
        (None, None, 3, [None] * 4),
        ("a", "b", None, [None] * 4),
        (None, None, 10, [10, 10, None, None]),
        ("", "", 0, [10, 0, b"", b""]),
    ],
)
def test_statistics_are_whole_or_absent(
    minimum: str | None, maximum: str | None, null_count: int | None, facts: list[Any]
) -> None:
    assert published(ColumnStatistics(minimum=minimum, maximum=maximum, null_count=null_count)) == facts


@pytest.mark.parametrize("zero", [0.0, -0.0, 0])
def test_zero_of_either_sign_lies_within_bounds_of_zero(zero: float) -> None:
    low, high = published(ColumnStatistics(minimum=zero, maximum=zero, null_count=0), "double")[2:]
    assert (low, high) == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))


def test_bounds_have_the_type_of_the_file() -> None:
    statistics = ColumnStatistics(minimum=1, maximum=2, null_count=0)
    assert published(statistics, "int64", "int32")[2:] == [b"\x01\0\0\0", b"\x02\0\0\0"]
    assert published(statistics, "double", "int16") == [None] * 4


def test_columns_of_the_key_and_the_partition_have_bounds_wherever_they_are() -> None:
    columns = {f"c{number}": "int64" for number in range(40)} | {"key": "int64", "at": "timestamp"}
    definition = dataset(columns, ["day(at)"])
    definition = msgspec.structs.replace(definition, record_key=("key",))
    assert bounded_fields(definition) == frozenset([*range(1, 33), 41, 42])
