"""How deep a text may nest is the same in both languages, and does not depend on how deep Python's stack is."""

from __future__ import annotations

import pytest

from app.kernel.format.errors import HeadwaterError
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.queries.parse import COMMON_MAX
from app.kernel.sql.reader import DEPTH_MAX
from tests.support.view_inputs import planned

SCHEMA = Schema(id=1, fields=(Field(id=1, name="paid", type="boolean"), Field(id=2, name="n", type="int32")))
FRAMES = 400
# What stands before and after the innermost part of a text, for each level; and how many levels that is.
CONDITIONS = {
    "parentheses": ("(", "paid", ")", 1),
    "NOT": ("NOT ", "paid", "", 1),
    "NOT and parentheses": ("NOT (", "paid", ")", 2),
    "AND and OR": ("paid OR n < 1 AND (", "paid", ")", 1),
    "literals": ("", "n = (((1)))", "", 0),
}
QUERIES = {
    **{name: parts for name, parts in CONDITIONS.items() if parts[3]},
    "sums": ("n + n * (", "n", ")", 1),
    "signs": ("- ", "n", "", 1),
    "CASE": ("CASE WHEN paid THEN ", "n", " END", 1),
    "calls": ("upper(", "customer", ")", 1),
    "casts": ("CAST(", "n", " AS int)", 1),
}


def below(frames, call):
    """What a call returns when this number of frames of Python are on the stack."""
    return below(frames - 1, call) if frames else call()


def nested(parts, levels):
    before, inside, after, of_each = parts
    count = levels // of_each if of_each else 0
    return before * count + inside + after * count


@pytest.mark.parametrize("name", CONDITIONS)
def test_filter_of_the_greatest_depth_is_parsed_on_a_deep_stack(name):
    text = nested(CONDITIONS[name], DEPTH_MAX)
    assert below(FRAMES, lambda: parse_filter(text, SCHEMA)).columns()


@pytest.mark.parametrize("name", QUERIES)
def test_view_of_the_greatest_depth_is_planned_on_a_deep_stack(name):
    sql = f"SELECT {nested(QUERIES[name], DEPTH_MAX)} AS x FROM orders"
    assert below(FRAMES, lambda: planned(sql)).schema.names() == ["x"]


@pytest.mark.parametrize("name", [name for name, parts in CONDITIONS.items() if parts[3]])
def test_filter_that_nests_deeper_is_refused(name):
    with pytest.raises(HeadwaterError, match="nests too deeply; expected at most 50 levels"):
        parse_filter(nested(CONDITIONS[name], DEPTH_MAX + 2), SCHEMA)


@pytest.mark.parametrize("name", QUERIES)
def test_view_that_nests_deeper_is_refused(name):
    with pytest.raises(HeadwaterError, match="nests too deeply; expected at most 50 levels"):
        planned(f"SELECT {nested(QUERIES[name], DEPTH_MAX + 2)} AS x FROM orders")


def test_view_with_too_many_queries_in_with_is_refused():
    def view(count):
        chain = ", ".join(f"q{n} AS (SELECT * FROM q{n - 1})" for n in range(1, count))
        return f"WITH q0 AS (SELECT * FROM orders), {chain} SELECT n FROM q{count - 1}"

    assert planned(view(COMMON_MAX)).schema.names() == ["n"]
    with pytest.raises(HeadwaterError, match="too many queries in WITH"):
        planned(view(COMMON_MAX + 1))


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT (n FROM orders", "this '(' is not closed"),
        ("SELECT tags[0 FROM orders", "this '[' is not closed"),
        ("SELECT n) FROM orders", "this ')' has no opening bracket"),
        ("SELECT (tags[0)] FROM orders", "unexpected ')'; expected ']'"),
        ("SELECT (CASE WHEN paid THEN 1) AS x FROM orders", "unexpected ')'; expected 'END'"),
        ("SELECT CASE WHEN paid THEN 1 AS x FROM orders", "unexpected 'AS'; expected END"),
    ],
)
def test_bracket_without_a_partner_is_named(sql, reason):
    with pytest.raises(HeadwaterError) as error:
        planned(sql)
    assert reason in error.value.detail


def test_keywords_after_a_dot_are_names_and_do_not_nest():
    schema = Schema(id=1, fields=(Field(id=1, name="s", type="struct<`case`: int32, `end`: int32>"),))
    assert parse_filter("(s.case = 1) AND (s.end = 2)", schema).text == "(s.case = 1) AND (s.end = 2)"
    with pytest.raises(HeadwaterError, match='no member "case"'):
        planned("SELECT (place.case) AS x FROM orders")
