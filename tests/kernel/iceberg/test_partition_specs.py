"""Partition specs, and the values of partitions: those that Iceberg's transforms give for the rows."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import parse_type
from app.kernel.iceberg.partition_specs import (
    json_values,
    partition_columns,
    partition_spec,
    partition_values,
)
from tests.kernel.iceberg.tables import dataset

EPOCH = dt.datetime.fromisoformat("1970-01-01")
DAY = dt.timedelta(days=1)
HOUR = dt.timedelta(hours=1)
MOMENTS = st.datetimes()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)

# The value of a row, and the value of its partition by the specification of Iceberg.
TRANSFORMS: dict[str, tuple[str, st.SearchStrategy[Any], Any]] = {
    "year(x)": ("timestamp_ntz", MOMENTS, lambda moment: moment.year - 1970),
    "month(x)": ("timestamp_ntz", MOMENTS, lambda moment: (moment.year - 1970) * 12 + moment.month - 1),
    "day(x)": ("timestamp_ntz", MOMENTS, lambda moment: (moment - EPOCH) // DAY),
    "hour(x)": ("timestamp_ntz", MOMENTS, lambda moment: (moment - EPOCH) // HOUR),
    "truncate(3, x)": ("string", TEXTS, lambda text: text[:3]),
    "truncate(10, x)": (
        "int32",
        st.integers(-(2**31) + 8, 2**31 - 1),
        lambda value: math.floor(value / 10) * 10,
    ),
    "`x`": ("string", TEXTS, lambda text: text),
    "x": (
        "decimal(38, 10)",
        st.decimals(-(10**27), 10**27, places=10),
        lambda value: int(value.scaleb(10, context=decimal.Context(prec=60))),
    ),
}


def paths_of(kind: str, entry: str, values: list[Any]) -> list[str]:
    """The path of the partition of each value."""
    rows = pa.table({"x": pa.array(values, parse_type(kind).arrow)})
    codes, paths = partition_codes(rows, [entry])
    return [paths[code] for code in codes]


@pytest.mark.parametrize("entry", TRANSFORMS)
@given(data=st.data())
def test_values_of_partitions_are_those_of_the_transforms(entry: str, data: st.DataObject) -> None:
    kind, values, transform = TRANSFORMS[entry]
    definition = dataset({"x": kind}, [entry])
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=8))
    for value, path in zip(rows, paths_of(kind, entry, rows), strict=True):
        assert partition_values(definition, path) == (None if value is None else transform(value),)


@pytest.mark.parametrize(
    ("kind", "value", "partition_value"),
    [
        ("date", dt.date(1969, 12, 31), -1),
        ("boolean", False, False),
        ("binary", b"\x00/", b"\x00/"),
        ("timestamp(ms)", dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC), -1_000),
        ("timestamp", dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), 1),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("string", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
        ("string", "a/b=c %2F ü", "a/b=c %2F ü"),
        ("string", "", ""),
    ],
)
def test_untransformed_values_of_partitions_are_exact(kind: str, value: Any, partition_value: Any) -> None:
    [path] = paths_of(kind, "x", [value])
    assert partition_values(dataset({"x": kind}, ["x"]), path) == (partition_value,)


@pytest.mark.parametrize(
    ("kind", "entry", "path", "value"),
    [
        ("date", "x", "x=1969-12-31", "1969-12-31"),
        ("date", "day(x)", "x_day=2026-11-21", "2026-11-21"),
        ("timestamp", "hour(x)", "x_hour=1970-01-02-03", 27),
        ("timestamp", "x", "x=2026-11-21 10%3A00%3A00.500000Z", "2026-11-21T10:00:00.500000+00:00"),
        ("timestamp_ntz", "x", "x=2026-11-21 10%3A00%3A00.000000", "2026-11-21T10:00:00.000000"),
        ("decimal(9, 2)", "x", "x=-0.50", "-0.50"),
        ("binary", "x", "x=00ff", "00FF"),
        ("boolean", "x", "x=true", True),
        ("int32", "truncate(10, x)", "x_trunc=-10", -10),
        ("string", "x", "x=__HIVE_DEFAULT_PARTITION__", None),
    ],
)
def test_values_of_partitions_have_a_json_form(kind: str, entry: str, path: str, value: Any) -> None:
    definition = dataset({"x": kind}, [entry])
    values = partition_values(definition, path)
    assert values is not None
    assert json_values(partition_columns(definition), values) == [value]


def test_spec_has_a_field_for_each_entry() -> None:
    definition = dataset(
        {"id": "int64", "country": "string", "at": "timestamp"},
        ["country", "day(at)", "truncate(2, country)"],
    )
    assert partition_spec(definition) == {
        "spec-id": 1,
        "fields": [
            {"source-id": 2, "field-id": 1000, "name": "country", "transform": "identity"},
            {"source-id": 3, "field-id": 1001, "name": "at_day", "transform": "day"},
            {"source-id": 2, "field-id": 1002, "name": "country_trunc", "transform": "truncate[2]"},
        ],
    }
    assert [column.result for column in partition_columns(definition)] == ["string", "date", "string"]
    path = "country=d%25/at_day=1970-01-02/country_trunc=d%25"
    assert partition_values(definition, path) == ("d%", 1, "d%")


def test_name_of_a_transform_is_no_name_of_a_column() -> None:
    definition = dataset({"at": "timestamp", "at_day": "string"}, ["day(at)"])
    assert [field["name"] for field in partition_spec(definition)["fields"]] == ["at_day_"]
    assert partition_values(definition, "at_day=1970-01-01") == (0,)


def test_member_of_a_struct_is_found_by_its_id() -> None:
    definition = dataset(
        {"id": "int64", "meta": "struct<at: timestamp, tag: string>"}, ["day(meta.at)", "meta.tag"]
    )
    ids = {"at": 11, "tag": 12}
    meta = Field(id=2, name="meta", type="struct<at: timestamp, tag: string>", member_ids=ids)
    schema = Schema(id=1, fields=(definition.schema.fields[0], meta))
    fields = partition_spec(structs.replace(definition, schema=schema))["fields"]
    assert [(field["source-id"], field["name"]) for field in fields] == [
        (11, "meta.at_day"),
        (12, "meta.tag"),
    ]


@pytest.mark.parametrize("entry", ["bucket(4, id)", "truncate(1073741825, id)", "uid"])
def test_entry_without_a_transform_leaves_the_table_without_partition(entry: str) -> None:
    definition = dataset({"id": "int64", "country": "string", "uid": "uuid"}, ["country", entry])
    assert partition_spec(definition) == {"spec-id": 0, "fields": []}
    assert partition_values(definition, "country=a/id_bucket=1") is None


@pytest.mark.parametrize(
    "path",
    [
        "",
        "x=1",
        "x=1/y=a/z=b",
        "other=1/y=a",
        "x=none/y=a",
        "x=2147483648/y=a",
    ],
)
def test_paths_without_the_values_of_the_spec_have_none(path: str) -> None:
    assert partition_values(dataset({"x": "int32", "y": "string"}, ["truncate(1, x)", "y"]), path) is None


def test_value_below_the_least_number_of_the_type_is_none_of_the_spec() -> None:
    definition = dataset({"x": "int32"}, ["truncate(100, x)"])
    [path] = paths_of("int32", "truncate(100, x)", [-(2**31)])
    assert partition_values(definition, path) is None


def test_value_of_which_the_path_has_a_hash_is_not_null() -> None:
    definition = dataset({"x": "string"}, ["x"])
    [long, null] = paths_of("string", "x", ["a" * 500, None])
    assert partition_values(definition, long) is None
    assert partition_values(definition, null) == (None,)
