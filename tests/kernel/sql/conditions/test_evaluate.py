"""Which rows a filter selects: by a table of cases, and against the reference for filters and rows of every kind."""

from __future__ import annotations

import decimal
from fractions import Fraction

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.tree import Filter
from tests.kernel.sql.conditions.columns import SCHEMA, TYPES, rows, table_of
from tests.kernel.sql.conditions.reference import OPERATORS, filters
from tests.support.examples import examples


@settings(max_examples=examples(100), deadline=None)
@given(written=filters(), found=st.lists(rows(), max_size=6), cut=st.integers(0, 6))
def test_rows_match_like_a_row_by_row_evaluation(written, found, cut):
    selection = parse_filter(written.text, SCHEMA)
    cut = min(cut, len(found))
    table = pa.concat_tables([table_of(found[:cut]), table_of(found[cut:])])
    matched = matches(selection, table)
    assert matched.dtype == np.bool_
    assert matched.tolist() == [written.holds(row) is True for row in found]
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            table = table.set_column(at, field.name, table.column(at).dictionary_encode())
    assert matches(selection, table).tolist() == matched.tolist()


@settings(max_examples=examples(100), deadline=None)
@given(written=filters())
def test_filter_round_trips_as_message_and_as_text(written):
    selection = parse_filter(written.text, SCHEMA)
    assert parse_filter(selection.text, SCHEMA) == selection
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(selection), type=Filter) == selection
    assert msgspec.json.decode(msgspec.json.encode(selection), type=Filter) == selection


@settings(max_examples=examples(100), deadline=None)
@given(written=filters(), found=st.lists(rows(), max_size=3))
def test_filter_requires_only_the_columns_it_names(written, found):
    selection = parse_filter(written.text, SCHEMA)
    table = table_of(found)
    needed = table.select([name for name in TYPES if name in selection.columns()])
    if selection.columns():
        assert matches(selection, needed).tolist() == matches(selection, table).tolist()


WEATHER = pa.table(
    {
        "flag": [True, False, None],
        "i8": pa.array([-128, 1, None], pa.int8()),
        "word": ["roof", "Dach", None],
        "price": pa.array(["1.50", "-0.01", None]).cast(pa.decimal128(5, 2)),
        "place": pa.array(
            [{"n": 1, "inner": {"word": "x", "in": None}}, {"n": None, "inner": None}, None],
            SCHEMA.to_arrow().field("place").type,
        ),
        "tags": [["a"], [], None],
    }
)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("flag", [0]),
        ("NOT flag", [1]),
        ("flag = false", [1]),
        ("flag != TRUE", [1]),
        ("flag IS NULL", [2]),
        ("NOT flag IS NULL", [0, 1]),
        ("i8 < 1.5", [0, 1]),
        ("i8 = 1.5", []),
        ("i8 != 1.5", [0, 1]),
        ("i8 = 300", []),
        ("i8 < 300", [0, 1]),
        ("NOT i8 < 300", []),
        ("i8 >= -128", [0, 1]),
        ("i8 BETWEEN -1e3 AND 0.5", [0]),
        ("1 = i8", [1]),
        ("0 < i8", [1]),
        ("i8 = NULL", []),
        ("i8 != NULL", []),
        ("i8 IN (1, NULL)", [1]),
        ("i8 NOT IN (1, NULL)", []),
        ("i8 NOT IN (1, 300)", [0]),
        ("i8 = NULL OR word = 'Dach'", [1]),
        ("NOT (i8 = NULL AND word = 'Dach')", [0]),
        ("i8 BETWEEN NULL AND 0", []),
        ("NOT i8 BETWEEN NULL AND 0", [1]),
        ("word LIKE '%o_'", [0]),
        ("word NOT LIKE 'D%'", [0]),
        ("word > 'Z'", [0]),
        ("price = 1.5", [0]),
        ("price = '1.500'", [0]),
        ("price < 0", [1]),
        ("price < -0.001", [1]),
        ("place.n = 1", [0]),
        ("place.n IS NULL", [1, 2]),
        ("place IS NULL", [2]),
        ("place.inner.word IN ('x', 'y')", [0]),
        ("place.inner IS NOT NULL", [0]),
        ("tags IS NOT NULL", [0, 1]),
        ("TRUE", [0, 1, 2]),
        ("FALSE", []),
        ("NULL", []),
        ("NOT NULL", []),
        ("flag OR i8 = 1 AND word = 'roof'", [0]),
        ("(flag OR i8 = 1) AND word = 'Dach'", [1]),
        ("NOT flag OR flag", [0, 1]),
    ],
)
def test_filter_selects_the_expected_rows(text, selected):
    matched = matches(parse_filter(text, SCHEMA), WEATHER)
    assert np.flatnonzero(matched).tolist() == selected


@pytest.mark.parametrize(
    ("name", "values"),
    [("i8", [Fraction(n) for n in range(-128, 128)]), ("tenths", [Fraction(n, 10) for n in range(-99, 100)])],
)
@pytest.mark.parametrize("sign", OPERATORS)
def test_small_types_compare_correctly_with_literals_around_every_value(name, values, sign):
    schema = Schema(id=1, fields=(*SCHEMA.fields, Field(id=99, name="tenths", type="decimal(2, 1)")))
    exact = [decimal.Decimal(value.numerator) / decimal.Decimal(value.denominator) for value in values]
    table = pa.table({name: pa.array(exact).cast(schema.to_arrow().field(name).type)})
    step = values[1] - values[0]
    for place in (values[0], values[1], Fraction(0), values[-2], values[-1]):
        for literal in (place - step, place - step / 4, place, place + step / 4, place + step):
            selection = parse_filter(f"{name} {sign} {float(literal):.3f}", schema)
            assert matches(selection, table).tolist() == [OPERATORS[sign](value, literal) for value in values]


@pytest.mark.parametrize(
    "text", ["{} = 0", "{} = -0.0", "{} IN (0, 5)", "{} IN (-0, 5)", "{} BETWEEN -0 AND 0"]
)
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_negative_and_positive_zero_are_equal(text, kind):
    name = f"f{kind.removeprefix('float')}"
    table = pa.table({name: pa.array([0.0, -0.0, 1.0, None], kind)})
    assert matches(parse_filter(text.format(name), SCHEMA), table).tolist() == [True, True, False, False]


def test_member_of_a_null_struct_is_null():
    kind = SCHEMA.to_arrow().field("place").type
    members = [pa.array([1, 1], pa.int32()), pa.nulls(2, kind.field("inner").type)]
    hidden = pa.StructArray.from_arrays(members, fields=list(kind), mask=pa.array([False, True]))
    table = pa.table({"place": hidden})
    assert matches(parse_filter("place.n = 1", SCHEMA), table).tolist() == [True, False]
    assert matches(parse_filter("place.n IS NULL", SCHEMA), table).tolist() == [False, True]


@pytest.mark.parametrize(
    "text", ["word = 'a'", "NOT flag", "place.n IN (1)", "TRUE", "word LIKE 'a%'", "i8 IS NULL"]
)
def test_empty_table_matches_nothing(text):
    selection = parse_filter(text, SCHEMA)
    for table in (SCHEMA.to_arrow().empty_table(), pa.Table.from_batches([], SCHEMA.to_arrow())):
        matched = matches(selection, table)
        assert matched.shape == (0,)
        assert matched.dtype == np.bool_


@pytest.mark.parametrize("pattern", ["_" * 1_000, "%_a" * 333, "é%" * 500, "%" * 1_000, "\\" * 1_000])
def test_longest_patterns_are_within_the_limits_of_arrow(pattern):
    table = pa.table({"word": ["a" * 9_900, "é" * 4_900, ""] * 100})
    assert matches(parse_filter(f"word LIKE '{pattern}'", SCHEMA), table).shape == (300,)
