"""What statistics say about a filter: never more than is certain, and as much as is worth having."""

from __future__ import annotations

import base64
import datetime as dt
import io

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.infra.files.statistics import column_statistics
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match, must_match
from tests.kernel.sql.conditions.columns import FLAT, SCHEMA, TYPES, rows, table_of
from tests.kernel.sql.conditions.reference import filters
from tests.support.examples import examples

FLAT_NAMES = tuple(FLAT)
# Rows of few columns, so that a filter often decides something about all of them.
COLUMNS = st.lists(st.sampled_from(FLAT_NAMES), min_size=1, max_size=2, unique=True).map(tuple)


def stored_statistics(table, row_group_rows=1_000):
    """The statistics that a file of these rows has in the catalogue, by way of a Parquet footer and of JSON."""
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=row_group_rows)
    statistics = column_statistics(pq.read_metadata(file), SCHEMA)
    return msgspec.json.decode(msgspec.json.encode(statistics), type=dict[str, ColumnStatistics])


@st.composite
def cases(draw):
    """A filter and rows that its columns are in; the other columns are null."""
    columns = draw(COLUMNS)
    found = draw(st.lists(rows(columns), min_size=1, max_size=6))
    return draw(filters(columns)), [dict.fromkeys(TYPES) | row for row in found]


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), row_group_rows=st.integers(1, 7))
def test_pruning_by_statistics_agrees_with_the_rows(case, row_group_rows):
    written, found = case
    selection = parse_filter(written.text, SCHEMA)
    table = table_of(found)
    selected = [written.holds(row) is True for row in found]
    statistics = stored_statistics(table, row_group_rows)
    assert may_match(selection, statistics, SCHEMA, len(found)) or not any(selected)
    assert all(selected) or not must_match(selection, statistics, SCHEMA, len(found))
    assert matches(selection, table).tolist() == selected


@settings(max_examples=examples(100), deadline=None)
@given(case=cases(), data=st.data())
def test_missing_statistics_never_exclude_more(case, data):
    written, found = case
    selection = parse_filter(written.text, SCHEMA)
    known = stored_statistics(table_of(found))
    rest = {
        number: msgspec.structs.replace(
            each, **dict.fromkeys(data.draw(st.sets(st.sampled_from(each.__struct_fields__))))
        )
        for number, each in known.items()
        if data.draw(st.booleans())
    }
    assert may_match(selection, rest, SCHEMA, len(found)) >= may_match(selection, known, SCHEMA, len(found))
    assert must_match(selection, rest, SCHEMA, len(found)) <= must_match(selection, known, SCHEMA, len(found))
    assert may_match(selection, {}, SCHEMA, len(found)) >= may_match(selection, rest, SCHEMA, len(found))


NOON = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)
# Two rows; what is not named has only nulls.
STATISTICS = {
    "flag": ColumnStatistics(minimum=True, maximum=True, null_count=0),
    "i8": ColumnStatistics(minimum=-5, maximum=5, null_count=0),
    "i16": ColumnStatistics(minimum=7, maximum=7, null_count=0),
    "i32": ColumnStatistics(minimum=7, maximum=7, null_count=1),
    "u32": ColumnStatistics(null_count=0),
    "u16": ColumnStatistics(minimum=1, maximum=2),
    "f64": ColumnStatistics(minimum=-0.0, maximum=1.5, null_count=0),
    "price": ColumnStatistics(minimum="1.00", maximum="10.00", null_count=0),
    "word": ColumnStatistics(minimum="San José", maximum="San Marino", null_count=0),
    "raw": ColumnStatistics(
        minimum=base64.b64encode(b"\x01").decode(), maximum=base64.b64encode(b"\xfe").decode(), null_count=0
    ),
    "day": ColumnStatistics(minimum="2026-11-01", maximum="2026-11-21", null_count=0),
    "at": ColumnStatistics(minimum=NOON.isoformat(), maximum=NOON.isoformat(), null_count=0),
    "place": ColumnStatistics(null_count=0),
    "clock_ms": ColumnStatistics(
        minimum="2026-11-21T12:00:00.001000", maximum="2026-11-21T12:00:00.002000", null_count=0
    ),
}


@pytest.mark.parametrize(
    ("text", "some", "every"),
    [
        ("i8 = 6", False, False),
        ("i8 = 5", True, False),
        ("i8 != 6", True, True),
        ("i8 < -5", False, False),
        ("i8 <= -5", True, False),
        ("i8 <= 5", True, True),
        ("i8 < 5", True, False),
        ("i8 > 5", False, False),
        ("i8 >= -5", True, True),
        ("i8 > -5", True, False),
        ("i8 BETWEEN -5 AND 5", True, True),
        ("i8 NOT BETWEEN -6 AND 6", False, False),
        ("i8 IN (-6, 6)", False, False),
        ("i8 NOT IN (-6, 6)", True, True),
        ("i8 NOT IN (-6, NULL)", False, False),
        ("i8 = 1.5", False, False),
        ("i8 < 1000", True, True),
        ("i8 IS NULL", False, False),
        ("i8 IS NOT NULL", True, True),
        ("i16 = 7", True, True),
        ("i16 != 7", False, False),
        ("i16 IN (6, 7)", True, True),
        ("i16 NOT IN (6, 7)", False, False),
        ("i16 IN (6, 8)", False, False),
        ("i32 = 7", True, False),
        ("i32 != 7", False, False),
        ("i32 = 7 OR i32 IS NULL", True, False),  # certain, but only if both sides are checked together
        ("i32 IS NULL", True, False),
        ("i64 = 7", False, False),
        ("i64 != 7", False, False),
        ("i64 IS NULL", True, True),
        ("u32 = 7", True, False),
        ("u32 IS NULL", False, False),
        ("u16 = 3", False, False),
        ("u16 < 3", True, False),
        ("u16 IS NULL", True, False),
        ("f64 < 0", False, False),
        ("f64 >= -0.0", True, True),
        ("f64 > 1.6", False, False),
        ("price < 2", True, False),
        ("price > 9.999", True, False),
        ("price > 10", False, False),
        ("price >= 0.999", True, True),
        ("flag", True, True),
        ("NOT flag", False, False),
        ("flag = FALSE", False, False),
        ("word = 'Rom'", False, False),
        ("raw = X'00'", False, False),
        ("raw < X'FF'", True, True),
        ("day = DATE '2026-11-22'", False, False),
        ("day <= '2026-11-21'", True, True),
        ("at = '2026-11-21T13:00:00+01:00'", True, True),
        ("at > '2026-11-21T12:00:00Z'", False, False),
        ("clock_ms > '2026-11-21 12:00:00.0005'", True, True),
        ("clock_ms < '2026-11-21 12:00:00.001'", False, False),
        ("place.n = 1", True, False),
        ("place.n IS NULL", True, False),
        ("place IS NULL", False, False),
        ("TRUE", True, True),
        ("FALSE", False, False),
        ("NULL", False, False),
        ("i8 = 6 AND place.n = 1", False, False),
        ("i8 = 6 OR place.n = 1", True, False),
        ("NOT (i8 = 6 AND place.n = 1)", True, True),
        ("i16 = 7 AND flag", True, True),
        ("i16 = 7 OR place.n = 1", True, True),
    ],
)
def test_bounds_decide_comparisons(text, some, every):
    known = {str(SCHEMA.field(name).id): each for name, each in STATISTICS.items()}
    for name in ("i64", "tags"):
        known[str(SCHEMA.field(name).id)] = ColumnStatistics(null_count=2)
    selection = parse_filter(text, SCHEMA)
    assert may_match(selection, known, SCHEMA, 2) is some
    assert must_match(selection, known, SCHEMA, 2) is every


@pytest.mark.parametrize(
    ("low", "high", "text", "some", "every"),
    [
        ("San José", "San Marino", "LIKE 'San%'", True, True),
        ("San José", "San Marino", "LIKE 'San J%'", True, False),
        ("San José", "San Marino", "LIKE 'San%a%'", True, False),
        ("San José", "San Marino", "LIKE 'San'", False, False),
        ("San José", "San Marino", "LIKE 'S_n%'", True, False),
        ("San José", "San Marino", "LIKE 'Santa%'", False, False),
        ("San José", "San Marino", "LIKE 'Sa%%'", True, True),
        ("San José", "San Marino", "LIKE 'R%'", False, False),
        ("San José", "San Marino", "LIKE 'San!%' ESCAPE '!'", False, False),
        ("San José", "San Marino", "NOT LIKE 'San %'", False, False),
        ("a_b", "a_b", "LIKE 'a!_b' ESCAPE '!'", True, True),
        ("a_b", "a_c", "LIKE 'a!_%' ESCAPE '!'", True, True),
        ("a", "b", "LIKE '%'", True, True),
        (None, None, "LIKE '%'", True, True),
        (None, None, "LIKE '_%'", True, False),
        (None, "b", "LIKE 'c%'", False, False),
        (None, "c", "LIKE 'c%'", True, False),
        ("c", None, "LIKE 'b%'", False, False),
        ("c", None, "LIKE 'c%'", True, False),
    ],
)
def test_bounds_decide_patterns(low, high, text, some, every):
    known = {str(SCHEMA.field("word").id): ColumnStatistics(minimum=low, maximum=high, null_count=0)}
    selection = parse_filter(f"word {text}", SCHEMA)
    assert may_match(selection, known, SCHEMA, 2) is some
    assert must_match(selection, known, SCHEMA, 2) is every


def test_file_without_rows_matches_nothing_and_everything_in_it():
    selection = parse_filter("i8 = 1", SCHEMA)
    assert not may_match(selection, {}, SCHEMA, 0)
    assert must_match(selection, {}, SCHEMA, 0)


def test_renamed_column_is_found_by_its_id():
    known = {"7": ColumnStatistics(minimum=1, maximum=2, null_count=0)}
    renamed = Schema(
        id=2, fields=(Field(id=7, name="later", type="int32"), Field(id=8, name="new", type="int32"))
    )
    assert not may_match(parse_filter("later = 3", renamed), known, renamed, 5)
    assert may_match(parse_filter("new = 3", renamed), known, renamed, 5)


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("at", "no time"),
        ("day", "2026"),
        ("price", "many"),
        ("raw", "é"),
        ("i8", "5"),
        ("word", 5),
        ("flag", "x"),
    ],
)
def test_unreadable_bound_is_treated_as_unknown(name, bound):
    literal = {
        "at": "'2026-11-21'",
        "day": "'2026-11-21'",
        "raw": "X'00'",
        "word": "'a'",
        "flag": "TRUE",
    }.get(name, "1")
    known = {str(SCHEMA.field(name).id): ColumnStatistics(minimum=bound, maximum=bound, null_count=0)}
    selection = parse_filter(f"{name} = {literal}", SCHEMA)
    assert may_match(selection, known, SCHEMA, 5)
    assert not must_match(selection, known, SCHEMA, 5)


def test_wider_type_reads_the_bounds_of_the_narrower_one():
    schema = Schema(
        id=2, fields=(Field(id=1, name="n", type="double"), Field(id=2, name="t", type="timestamp_ntz"))
    )
    known = {
        "1": ColumnStatistics(minimum=1, maximum=2, null_count=0),
        "2": ColumnStatistics(minimum="2026-11-01", maximum="2026-11-02", null_count=0),
    }
    assert not may_match(parse_filter("n > 2.5", schema), known, schema, 5)
    assert must_match(parse_filter("t < '2026-11-02 00:00:01'", schema), known, schema, 5)


def test_member_is_not_mistaken_for_a_column_with_the_same_path():
    schema = Schema(
        id=1, fields=(Field(id=1, name="a.b", type="int32"), Field(id=2, name="a", type="struct<b: string>"))
    )
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([{"a.b": 1, "a": {"b": "x"}}], schema.to_arrow()), file)
    statistics = column_statistics(pq.read_metadata(file), schema)
    assert statistics == {"1": ColumnStatistics(minimum=1, maximum=1, null_count=0)}


def test_values_too_long_for_statistics_are_not_excluded():
    long = "x" * 5_000
    words = pa.table({"word": ["a", long, "m"]})
    for row_group_rows in (1, 2, 3):
        statistics = stored_statistics(words, row_group_rows)
        assert statistics[str(SCHEMA.field("word").id)] == ColumnStatistics(null_count=0)
        assert may_match(parse_filter("word > 'n'", SCHEMA), statistics, SCHEMA, 3)
        assert not must_match(parse_filter("word < 'n'", SCHEMA), statistics, SCHEMA, 3)
