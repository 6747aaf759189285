"""The errors of both languages suggest what was probably meant."""

from __future__ import annotations

import pytest

from app.kernel.format.errors import InvalidFilter, InvalidView
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.parse import parse_filter
from tests.support.view_inputs import planned

SCHEMA = Schema(
    id=1,
    fields=(
        Field(id=1, name="parcel", type="string"),
        Field(id=2, name="weight", type="int32"),
        Field(id=3, name="place", type="struct<city: string>"),
        Field(id=4, name="day", type="date"),
    ),
)


def refused_filter(text):
    with pytest.raises(InvalidFilter) as error:
        parse_filter(text, SCHEMA)
    return error.value


def refused_view(sql):
    with pytest.raises(InvalidView) as error:
        planned(sql)
    return error.value


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('parcel="A1"', 7),
        ('"A1" = parcel', 0),
        ('parcel != "A1" AND weight > 1', 10),
        ('parcel IN ("A1", "B2")', 11),
        ('parcel BETWEEN "A1" AND "B2"', 15),
        ("parcel = A1", 9),
    ],
)
def test_filter_suggests_single_quotes_for_a_string(text, position):
    error = refused_filter(text)
    assert error.facts == {"position": position, "expected": "a literal such as 'A1'"}
    quotes = "in double quotes" if '"' in text else "without single quotes"
    assert f"A1 {quotes} is the name of a column, and strings take single quotes" in error.detail


def test_filter_doubles_quotes_within_the_suggested_string():
    assert refused_filter('parcel = "it\'s"').facts["expected"] == "a literal such as 'it''s'"


def test_filter_cuts_a_long_suggestion():
    error = refused_filter('parcel = "' + "a" * 5_000 + '"')
    assert error.facts["expected"] == f"a literal such as '{'a' * 40}…'"
    assert len(error.detail) < 500


@pytest.mark.parametrize("text", ['parcel LIKE "A%"', 'day = DATE "2026-11-21"'])
def test_filter_error_explains_single_and_double_quotes(text):
    assert "double quotes enclose names, single quotes strings" in refused_filter(text).detail


@pytest.mark.parametrize(
    ("text", "position", "hint"),
    [
        ("parcel == 'A1'", 7, "use ="),
        ("weight > 1 && weight < 5", 11, "use AND"),
        ("weight > 1 || weight < 5", 11, "use OR"),
        ("!(weight > 1)", 0, "use NOT"),
        ("weight = 1; DROP TABLE parcels", 10, "a filter is one condition"),
        ("parcel = “A1”", 9, "a typographic quote encloses nothing; expected ' around strings"),
        ("parcel = ‘A1’", 9, "a typographic quote encloses nothing; expected ' around strings"),
        ("parcel = `A1`", 9, "expected \" around names, ' around strings"),
        ("parcel = 'it's'", 14, "within, ' is written twice"),
        ("weight = parcel", 9, "two columns cannot be compared"),
    ],
)
def test_filter_suggests_the_operator_or_quote_of_the_language(text, position, hint):
    error = refused_filter(text)
    assert hint in error.detail
    assert error.facts["position"] == position


@pytest.mark.parametrize(
    ("text", "hint", "expected"),
    [
        ("wieght > 1", '"wieght" (did you mean "weight"?)', '"weight"'),
        ("Parcel = 'A1'", '"Parcel" (did you mean "parcel"?)', '"parcel"'),
        ("place.cty = 'Oslo'", '"cty" (did you mean "city"?)', '"city"'),
        ("something = 1", 'there is no column "something"; expected', '"parcel", "weight", "place", "day"'),
    ],
)
def test_filter_suggests_a_similar_column(text, hint, expected):
    error = refused_filter(text)
    assert hint in error.detail
    assert error.facts["expected"] == expected


@pytest.mark.parametrize(
    ("sql", "position", "hint"),
    [
        ('SELECT id FROM orders WHERE customer = "A1"', 39, "expected 'A1', or one of"),
        ('SELECT id FROM orders WHERE customer IN ("A1")', 41, "strings take single quotes"),
        ('SELECT id FROM orders WHERE customer LIKE "A%"', 42, "double quotes enclose names"),
        ('SELECT id FROM orders WHERE day = DATE "2026-11-21"', 39, "double quotes enclose names"),
        ("SELECT id FROM orders WHERE customer = “A1”", 39, "a typographic quote encloses nothing"),
        ("SELECT custmer FROM orders", 7, 'no column "custmer" (did you mean "customer"?)'),
        ("SELECT o.custmer FROM orders AS o", 7, 'no column "o.custmer" (did you mean "customer"?)'),
        ("SELECT place.cty AS x FROM orders", 7, 'no member "cty" (did you mean "city"?)'),
        ("SELECT uper(customer) AS x FROM orders", 7, 'no function "uper" (did you mean "upper" or'),
        ('SELECT "upper"(customer) AS x FROM orders', 7, "names of functions cannot be quoted"),
    ],
)
def test_view_suggests_quotes_and_similar_names(sql, position, hint):
    error = refused_view(sql)
    assert hint in error.detail
    assert error.facts["position"] == position
