"""Partitions: what entries of `partition_by` mean, which partition a row is in, and that none is ever missed."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.partition.fields import parse_partition, partition_name
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.partition.segments import partition_path
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import (
    DATE,
    STRING,
    Boolean,
    Bytes,
    DataType,
    Date,
    Decimal,
    String,
    Timestamp,
    parse_type,
    to_arrow,
)
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match
from tests.kernel.codecs.samples import schema_of, values
from tests.support.examples import a_third_of

EPOCH = dt.datetime.fromisoformat("1970-01-01T00:00:00")
NULL = "__HIVE_DEFAULT_PARTITION__"

MOMENT = dt.datetime(2026, 11, 21, 13, 30, tzinfo=dt.UTC)
ROW = pa.table(
    {
        "country": ["DE"],
        "day": [dt.date(2026, 11, 21)],
        "ts": pa.array([MOMENT], pa.timestamp("us", tz="UTC")),
        "early": pa.array([-3_600_000], pa.timestamp("ms")),
        "name": ["Łódź"],
        "n": pa.array([-7], pa.int64()),
        "low": pa.array([-(2**63)], pa.int64()),
        "raw": [b"\x00\xff"],
        "address": pa.array(
            [{"city": "Köln", "at": None}],
            pa.struct([("city", pa.string()), ("at", pa.struct([("zone", pa.int32())]))]),
        ),
        "nothing": pa.array([None], pa.string()),
        "odd": [NULL],
    }
)


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ("country", "country=DE"),
        ("day", "day=2026-11-21"),
        ("ts", "ts=2026-11-21 13%3A30%3A00.000000Z"),
        ("raw", "raw=00ff"),
        ("year(day)", "day_year=2026"),
        ("month(ts)", "ts_month=2026-11"),
        ("day(ts)", "ts_day=2026-11-21"),
        ("hour(ts)", "ts_hour=2026-11-21-13"),
        ("year(early)", "early_year=1969"),
        ("hour(early)", "early_hour=1969-12-31-23"),
        ("truncate(3, name)", "name_trunc=%C5%81%C3%B3d"),
        ("truncate(5, n)", "n_trunc=-10"),
        ("truncate(10, low)", "low_trunc=-9223372036854775810"),
        ("bucket(1000, n)", "n_bucket=751"),
        ("address.city", "address.city=K%C3%B6ln"),
        ("address.at.zone", f"address.at.zone={NULL}"),
        ("nothing", f"nothing={NULL}"),
        ("bucket(3, nothing)", f"nothing_bucket={NULL}"),
        ("odd", "odd=%5F_HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_partition_folders_keep_their_published_names(entry: str, path: str) -> None:
    assert partition_codes(ROW, [entry])[1] == [path]


@pytest.mark.parametrize(
    ("values_", "path"),
    [
        (["2013", "EWR"], "year=2013/origin=EWR"),
        (["..", "a/b"], "year=../origin=a%2Fb"),
        (["", "ü %"], "year=/origin=%C3%BC %25"),
        ([None, NULL], f"year={NULL}/origin=%5F_HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_partition_paths_stay_below_their_folder(values_: list[str | None], path: str) -> None:
    assert partition_path(["year", "origin"], values_) == path


def test_long_values_have_short_and_distinct_segments() -> None:
    long, longer = partition_path(["p"], ["ü" * 300]), partition_path(["p"], ["ü" * 301])
    forged = partition_path(["p"], ["a" * 300])
    assert len({long, longer, forged, partition_path(["p"], [forged.removeprefix("p=")])}) == 4
    assert max(len(path) for path in (long, longer, forged)) <= 200


TYPES = [
    "boolean",
    "int8",
    "int64",
    "uint32",
    "string",
    "binary",
    "date",
    "decimal(12, 9)",
    "timestamp",
    "timestamp(ms)",
    "timestamp_ntz",
    "timestamp_ntz(ms)",
]


def transforms(source: DataType) -> st.SearchStrategy[str]:
    """Entries by field `x` of the type; the field is called `{}`."""
    widths = st.sampled_from([1, 2, 10, 2**31 - 1])
    found = [st.just("{}"), st.integers(1, 5).map(lambda count: f"bucket({count}, {{}})")]
    if source == DATE or isinstance(source, Timestamp):
        found += [st.just(f"{unit}({{}})") for unit in ("year", "month", "day")]
    if isinstance(source, Timestamp):
        found.append(st.just("hour({})"))
    if source == STRING or "int" in str(source):
        found.append(widths.map(lambda width: f"truncate({width}, {{}})"))
    return st.one_of(found)


Sample = tuple[list[str], Schema, pa.Table]


@st.composite
def partitioned(draw: st.DrawFn) -> Sample:
    """Entries by up to three fields, of which one may be a member of a struct, and rows with few different values."""
    sources = [parse_type(draw(st.sampled_from(TYPES))) for _ in range(draw(st.integers(1, 3)))]
    schema = schema_of(
        {f"f{n}": str(source) for n, source in enumerate(sources)} | {"s": "struct<m: string>"}
    )
    entries, columns = [], {}
    for number, source in enumerate(sources):
        pool = draw(st.lists(st.one_of(st.none(), values(source)), min_size=1, max_size=4))
        columns[f"f{number}"] = draw(st.lists(st.sampled_from(pool), min_size=5, max_size=5))
        entries += [
            text.format(f"f{number}") for text in draw(st.sets(transforms(source), min_size=1, max_size=3))
        ]
    columns["s"] = draw(st.lists(st.sampled_from([None, {"m": None}, {"m": "x"}]), min_size=5, max_size=5))
    entries = draw(st.permutations([*entries, "s.m"]))
    arrow = schema.to_arrow()
    arrays = [pa.array(columns[field.name], field.type) for field in arrow]
    return entries, schema, pa.Table.from_arrays(arrays, schema=arrow)


def expected_value(value: Any, transform: str, argument: int, source: DataType) -> str | None:
    """The value of one row in a path, written without the code under test. Times are ticks."""
    if value is None:
        return None
    match transform, source:
        case "bucket", _:
            return str(xxhash.xxh64_intdigest(canonical(value, source)) % argument)
        case "truncate", String():
            return value[:argument]
        case "truncate", _:
            return str((value // argument) * argument)
        case "identity", Boolean():
            return "true" if value else "false"
        case "identity", Bytes():
            return value.hex()
        case "identity", Decimal():
            return pa.scalar(value, to_arrow(source)).cast(pa.string()).as_py()
        case "identity", Timestamp(unit, zoned):
            text = moment(value, source).isoformat(" ", "microseconds" if unit == "us" else "milliseconds")
            return text + ("Z" if zoned else "")
        case "identity", _:
            return str(value)
    at = value.isoformat() if isinstance(value, dt.date) else moment(value, source).isoformat()
    return {"year": at[:4], "month": at[:7], "day": at[:10], "hour": at[:13].replace("T", "-")}[transform]


def moment(ticks: int, source: DataType) -> dt.datetime:
    assert isinstance(source, Timestamp)
    return EPOCH + dt.timedelta(microseconds=ticks * (1 if source.unit == "us" else 1000))


def canonical(value: Any, source: DataType) -> bytes:
    match source:
        case Date():
            return str((value - EPOCH.date()).days).encode()
        case Boolean():
            return b"true" if value else b"false"
        case Decimal():
            return pa.scalar(value, to_arrow(source)).cast(pa.string()).as_py().encode()
        case Bytes():
            return value
        case _:
            return str(value).encode()


def plain(column: pa.ChunkedArray, source: DataType) -> list[Any]:
    return (column.cast(pa.int64()) if isinstance(source, Timestamp) else column).to_pylist()


def row_by_row(entries: list[str], schema: Schema, rows: pa.Table) -> list[str]:
    """The path of every row."""
    columns = []
    for text in entries:
        field = parse_partition(text)
        source = schema.field(field.path[0]).data_type()
        found = plain(rows.column(field.path[0]), source)
        if len(field.path) == 2:
            found = [row and row["m"] for row in found]
            source = STRING
        columns.append(
            [expected_value(value, field.transform.value, field.argument or 0, source) for value in found]
        )
    names = [partition_name(parse_partition(text)) for text in entries]
    return [partition_path(names, row) for row in zip(*columns, strict=True)]


@given(partitioned())
@settings(deadline=None, max_examples=a_third_of(150))
def test_partition_codes_equal_those_of_single_rows(sample: Sample) -> None:
    entries, schema, rows = sample
    chunks = pa.concat_tables([rows.slice(0, 2), rows.slice(2)])
    codes, paths = partition_codes(chunks, entries)
    assert codes.dtype == np.int32
    assert [paths[code] for code in codes] == row_by_row(entries, schema, rows)
    assert len(set(paths)) == len(paths)


def test_combinations_of_many_values_do_not_overflow() -> None:
    rows = pa.table({f"f{n}": pa.array(np.random.default_rng(n).permutation(20_000)) for n in range(6)})
    codes, paths = partition_codes(rows, rows.column_names)
    assert len(set(paths)) == rows.num_rows
    assert paths[codes[17]] == "/".join(f"{name}={rows[name][17].as_py()}" for name in rows.column_names)


def test_empty_table_has_no_partitions() -> None:
    codes, paths = partition_codes(ROW.slice(0, 0), ["country", "day(ts)"])
    assert (len(codes), paths) == (0, [])


def within(value: Any, bounds: ColumnStatistics, source: DataType) -> bool:
    """Whether a value, as a row has it, lies within bounds as the catalogue keeps them."""
    read: Callable[[Any], Any] = {
        dt.datetime: dt.datetime.fromisoformat,
        dt.date: dt.date.fromisoformat,
        decimal.Decimal: decimal.Decimal,
        bytes: base64.b64decode,
    }.get(type(value := as_object(value, source)), lambda bound: bound)
    low = None if bounds.minimum is None else read(bounds.minimum)
    high = None if bounds.maximum is None else read(bounds.maximum)
    return (low is None or low <= value) and (high is None or value <= high)


def as_object(value: Any, source: DataType) -> Any:
    if isinstance(source, Timestamp):
        return moment(value, source).replace(tzinfo=dt.UTC if source.zoned else None)
    return value


@given(partitioned())
@settings(deadline=None, max_examples=a_third_of(150))
def test_statistics_never_exclude_a_row_of_the_partition(sample: Sample) -> None:
    entries, schema, rows = sample
    codes, paths = partition_codes(rows, entries)
    known = [partition_statistics(path, entries, schema) for path in paths]
    for field in schema.fields[:-1]:
        source = field.data_type()
        for row, value in enumerate(plain(rows.column(field.name), source)):
            bounds = known[codes[row]].get(str(field.id))
            if bounds is None:
                continue
            assert bounds.null_count == 0
            assert value is not None
            assert within(value, bounds, source)


DATED = schema_of(
    {"ts": "timestamp", "local": "timestamp_ntz(ms)", "day": "date", "name": "string", "n": "int32"}
)


@pytest.mark.parametrize(
    ("entries", "path", "found"),
    [
        (["n"], "n=-5", {"5": (-5, -5)}),
        (["name"], "name=K%C3%B6ln", {"4": ("Köln", "Köln")}),
        (["day"], "day=2026-11-21", {"3": ("2026-11-21", "2026-11-21")}),
        (["month(day)"], "day_month=2024-02", {"3": ("2024-02-01", "2024-02-29")}),
        (["year(day)"], "day_year=9999", {"3": ("9999-01-01", "9999-12-31")}),
        (
            ["day(ts)"],
            "ts_day=2026-11-21",
            {"1": ("2026-11-21T00:00:00+00:00", "2026-11-21T23:59:59.999999+00:00")},
        ),
        (
            ["hour(local)"],
            "local_hour=2026-11-21-13",
            {"2": ("2026-11-21T13:00:00", "2026-11-21T13:59:59.999000")},
        ),
        (
            ["year(ts)", "day(ts)"],
            "ts_year=2026/ts_day=2026-11-21",
            {"1": ("2026-11-21T00:00:00+00:00", "2026-11-21T23:59:59.999999+00:00")},
        ),
        (["truncate(3, name)"], "name_trunc=abc", {"4": ("abc", "abd")}),
        (["truncate(3, name)"], "name_trunc=ab", {"4": ("ab", "ab")}),
        (["truncate(1, name)"], "name_trunc=%ED%9F%BF", {"4": ("\ud7ff", "\ue000")}),
        (["truncate(2, name)"], "name_trunc=a%F4%8F%BF%BF", {"4": ("a\U0010ffff", "b")}),
        (["truncate(1, name)"], "name_trunc=%F4%8F%BF%BF", {"4": ("\U0010ffff", None)}),
        (["truncate(10, n)"], "n_trunc=-10", {"5": (-10, -1)}),
        (["bucket(4, n)"], "n_bucket=2", {}),
        (["n", "name"], f"n={NULL}/name=x", {"4": ("x", "x")}),
        (["name"], f"name={NULL}", {}),
        (["name"], "name=%5F_HIVE_DEFAULT_PARTITION__", {"4": (NULL, NULL)}),
        (["n"], "", {}),
    ],
)
def test_partition_path_yields_its_statistics(
    entries: list[str], path: str, found: dict[str, tuple[Any, Any]]
) -> None:
    known = partition_statistics(path, entries, DATED)
    assert {number: (each.minimum, each.maximum) for number, each in known.items()} == found


def test_truncated_path_yields_no_statistics() -> None:
    long = "x" * 300
    [path] = partition_codes(pa.table({"name": [long]}), ["name"])[1]
    assert partition_statistics(path, ["name"], DATED) == {}


def test_path_of_another_dataset_is_refused() -> None:
    with pytest.raises(ValueError, match="not a partition of the field 'n'"):
        partition_statistics("name=x", ["n"], DATED)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("ts >= TIMESTAMP '2026-11-21T23:59:59.999999Z'", ["2026-11-21", "2026-11-22", NULL]),
        ("ts < TIMESTAMP '2026-11-21T00:00:00Z'", [NULL]),
        ("ts BETWEEN DATE '2026-11-22' AND DATE '2026-11-23'", ["2026-11-22", NULL]),
        ("ts IS NULL", [NULL]),
        ("n = 5", ["2026-11-21", "2026-11-22", NULL]),
    ],
)
def test_filters_exclude_partitions(where: str, kept: list[str]) -> None:
    selection = parse_filter(where, DATED)
    found = [
        day
        for day in ("2026-11-21", "2026-11-22", NULL)
        if may_match(selection, partition_statistics(f"ts_day={day}", ["day(ts)"], DATED), DATED, 7)
    ]
    assert found == kept
