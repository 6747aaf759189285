"""What is a filter and what is not, what its text means for a schema, and that no text does harm."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.kernel.format.errors import InvalidFilter
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.tree import Column, Comparison, Constant, OneOf, Operator
from tests.kernel.sql.conditions.columns import SCHEMA
from tests.support.examples import examples


def refused(text, schema=SCHEMA):
    with pytest.raises(InvalidFilter) as error:
        parse_filter(text, schema)
    assert set(error.value.facts) == {"position", "expected"}
    return error.value


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "empty"),
        ("-- nothing", 0, "empty"),
        ("i8 =", 4, "ends too early"),
        ("i8 = 1 AND", 10, "ends too early"),
        ("i8 = 1;", 6, "';' is not part"),
        ("i8 = 1; DROP TABLE readings", 6, "';' is not part"),
        ("i8 = 1 i16 = 2", 7, "unexpected 'i16'"),
        ("i8 == 1", 3, "use ="),
        ("i8 = 1, flag", 6, "unexpected ','"),
        ("(i8, i16) = (1, 2)", 3, "unexpected ','"),
        ("(i8 = 1", 0, "not closed"),
        ("i8 = 1)", 6, "has no opening bracket"),
        ("i8 = 'x", 5, "this string has no end"),
        ('"i8 = 1', 0, "this name has no end"),
        ("i8 = 1 /* i16 = 2", 7, "this comment has no end"),
        ("i8 = 1 {# i16 = 2 #}", 7, "not part of the language"),
        ("i8 {# i16 = 2 #} = 1", 3, "not part of the language"),
        ("i8 = 1 /*+ x */ + 2", 16, "'+' is not part"),
        ("abs(i8) = 1", 0, "functions"),
        ("word = upper('a')", 7, "functions"),
        ('"abs"(i8) = 1', 0, "functions"),
        ("i8 = ANY (1, 2)", 5, "functions"),
        ("i8 IN (SELECT 1)", 14, "unexpected '1'"),
        ("EXISTS (SELECT 1)", 0, "functions"),
        ("i8 + 1 = 2", 3, "'+' is not part"),
        ("i8 = 3 - 1", 5, "not a literal"),
        ("i8 = -(-1)", 5, "not a literal"),
        ("i8 = i16", 5, "two columns cannot be compared"),
        ("1 = 1", 0, "does not compare a column with a literal"),
        ("i8 = 1 = flag", 7, "unexpected '='"),
        ("(i8 = 1) IS NULL", 1, "not a column"),
        ("i8 IN", 5, "ends too early"),
        ("i8 IN ()", 7, "unexpected"),
        ("i8 IN (1,)", 9, "unexpected"),
        ("i8 IN 1", 6, "unexpected"),
        ("i8 IN i16", 6, "unexpected 'i16'"),
        ("i8 IN (i16)", 7, "i16 without single quotes is the name of a column"),
        ("i8 BETWEEN 1 2 AND flag", 13, "unexpected"),
        ("i8 BETWEEN SYMMETRIC 2 AND 1", 21, "unexpected"),
        ("i8 IS 1", 6, "unexpected '1'; expected NULL"),
        ("flag IS NOT TRUE", 12, "unexpected 'TRUE'; expected NULL"),
        ("i8 IS DISTINCT FROM 1", 6, "unexpected 'DISTINCT'"),
        ("flag ISNULL", 5, "unexpected"),
        ("word ILIKE 'a'", 5, "unexpected"),
        ("word LIKE word", 10, "not a string literal"),
        ("word LIKE NULL", 10, "not a string literal"),
        ("word LIKE 'a' ESCAPE '!!'", 21, "one character"),
        ("word LIKE 'a' ESCAPE NULL", 21, "not a string literal"),
        ("word LIKE 'a!b' ESCAPE '!'", 10, "escapes nothing"),
        ("word LIKE 'a!' ESCAPE '!'", 10, "escapes nothing"),
        ("word LIKE '" + "_" * 1_001 + "'", 10, "too long"),
        ("i8 LIKE '1'", 0, "LIKE does not support int8"),
        ("i8 = 0x1F", 5, "a number cannot end with letters"),
        ("i8 = 1_000", 5, "a number cannot end with letters"),
        ("i8 = .5", 5, "a digit before the point"),
        ("i8 = `i16`", 5, "` does not enclose names"),
        ("i8 = @i16", 5, "is not part"),
        ("i8 = ?", 5, "is not part"),
        ("i8 = :name", 5, "is not part"),
        ("tags[0] = 'a'", 4, "is not part"),
        ("place.* = 1", 6, "is not part"),
        ("i8::int = 1", 2, "is not part"),
        ("CAST(i8 AS int) = 1", 0, "functions"),
        ("CASE WHEN flag THEN 1 END = 1", 5, "unexpected 'WHEN'"),
        ("i8", 0, "of type int8 is not a condition"),
        ("5", 0, "not a condition"),
        ("'TRUE'", 0, "not a condition"),
        ("i8 = 1 AND 5", 11, "not a condition"),
        ("i8 = '\ud800'", 6, "surrogate"),
    ],
)
def test_invalid_filter_is_refused_with_its_position(text, position, reason):
    error = refused(text)
    assert reason in error.detail
    assert error.facts["position"] == position
    assert error.detail.endswith(f"expected {error.facts['expected']}")


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("word = 5", 7, "a string such as 'text', since the column is string"),
        ("word = TRUE", 7, "a string such as 'text'"),
        ("word IN ('a', 5)", 14, "a string such as 'text'"),
        ("word BETWEEN 'a' AND 5", 21, "a string such as 'text'"),
        ("i8 = '5'", 5, "a number, since the column is int8"),
        ("i8 = X'05'", 5, "a number, since the column is int8"),
        ("f64 = '5'", 6, "a number, since the column is double"),
        ("price = 'cheap'", 8, "a number"),
        ("flag = 1", 7, "TRUE or FALSE"),
        ("flag < TRUE", 7, "= or !=: booleans have no order"),
        ("flag BETWEEN FALSE AND TRUE", 13, "= or !=: booleans have no order"),
        ("raw = 'a'", 6, "bytes such as X'00FF'"),
        ("raw = X'0'", 6, "an even number of hexadecimal digits"),
        ("raw = X' 00'", 6, "an even number of hexadecimal digits"),
        ("day = 5", 6, "a date such as DATE"),
        ("day = '2026-02-30'", 6, "day is out of range for month"),
        ("day = TIMESTAMP '2026-11-21 00:00:00'", 6, "a date such as DATE"),
        ("at = 5", 5, "a time such as TIMESTAMP"),
        ("at = 'now'", 5, "YYYY-MM-DDTHH:MM:SS"),
        ("at = '2026-11-21 10:00:00.0000001'", 5, "more than 6 fractional digits"),
        ("at = '2026-11-21 24:00:00'", 5, "hour must be in 0..23"),
        ("clock = '2026-11-21T10:00:00Z'", 8, "a time without a zone, since the column is timestamp_ntz"),
        ("tags = 'a'", 7, "IS NULL or IS NOT NULL: the column is list<string>"),
        ("tags = NULL", 7, "IS NULL or IS NOT NULL: the column is list<string>"),
        ("place IN (1)", 10, "IS NULL or IS NOT NULL"),
        ("i8 = 1e1001", 5, "a number of 1,000 digits at most"),
        ("i8 = " + "1" * 1_001, 5, "a number of 1,000 digits at most"),
        ("f64 = 1e" + "9" * 5_000, 6, "a number of 1,000 digits at most"),
    ],
)
def test_literal_must_match_its_column_type(text, position, expected):
    error = refused(text)
    assert expected in error.facts["expected"]
    assert error.facts["position"] == position


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("Word = 'a'", 0, '"word"'),
        ("wrod = 'a'", 0, '"word"'),
        ("i8 = 1 AND clokc IS NULL", 11, '"clock", "clock_ms"'),
        ("place.m = 1", 6, '"n", "inner"'),
        ("place.inner.Word = 'a'", 12, '"word"'),
        ("something = 1", 0, '"flag", "i8", "i16", "i32", "i64", …'),
        ('"place.n" = 1', 0, '"place"'),
    ],
)
def test_unknown_column_is_refused_with_similar_names(text, position, expected):
    error = refused(text)
    assert "there is no column" in error.detail
    assert error.facts["expected"] == expected
    assert error.facts["position"] == position


def test_only_structs_have_members():
    assert "of type string has no members" in refused("word.n = 1").detail
    assert "of type list<string> has no members" in refused("tags.element = 'a'").detail


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("i8=1", "i8 = 1"),
        ("  not flag\n or\ti8<>-1.50 -- why\n", "NOT flag OR i8 <> -1.50"),
        ("i8 /* this /* one */ = 1", "i8 = 1"),
        ("i8 not in (1,2)", "i8 NOT IN (1, 2)"),
        ("i8 is not null", "i8 IS NOT NULL"),
        ("i8 not null", "i8 NOT NULL"),
        ("i8 Between 1 And 2", "i8 BETWEEN 1 AND 2"),
        ("word not like 'a!%' escape '!'", "word NOT LIKE 'a!%' ESCAPE '!'"),
        ("((flag))and true", "((flag)) AND TRUE"),
        ("date '2026-11-21'=day", "DATE '2026-11-21' = day"),
        ("at<timestamp'2026-11-21 00:00:00'", "at < TIMESTAMP '2026-11-21 00:00:00'"),
        ("raw=x'0aFF'", "raw = X'0aFF'"),
        ("word='it''s --no comment'", "word = 'it''s --no comment'"),
        ('"an ""odd"" name">0', '"an ""odd"" name" > 0'),
        ("place.\"inner\".word='a'", "place.\"inner\".word = 'a'"),
    ],
)
def test_filter_has_a_canonical_text(text, canonical):
    selection = parse_filter(text, SCHEMA)
    assert selection.text == canonical
    assert parse_filter(canonical, SCHEMA) == selection


def test_sql_keywords_are_column_names():
    names = [
        "select",
        "case",
        "date",
        "timestamp",
        "x",
        "any",
        "interval",
        "order",
        "array",
        "unknown",
        "json",
        "if",
    ]
    schema = Schema(id=1, fields=tuple(Field(id=n, name=name, type="int32") for n, name in enumerate(names)))
    selection = parse_filter(" OR ".join(f"{name} = 1" for name in names), schema)
    assert selection.columns() == set(names)


def test_keywords_of_the_language_are_names_in_quotes():
    schema = Schema(
        id=1, fields=(Field(id=1, name="in", type="boolean"), Field(id=2, name="NULL", type="boolean"))
    )
    assert parse_filter('"in" AND NOT "NULL"', schema).columns() == {"in", "NULL"}


def test_members_are_named_sixteen_levels_deep():
    kind, path = "int32", []
    for depth in range(15):
        kind, path = f"struct<m{depth}: {kind}>", [f"m{depth}", *path]
    schema = Schema(id=1, fields=(Field(id=1, name="top", type=kind),))
    selection = parse_filter(f"top.{'.'.join(path)} = 1", schema)
    column = Column(path=("top", *path), type="int32")
    assert selection.root == Comparison(column=column, operator=Operator.EQUAL, value=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("i8 = 1.0", 1),
        ("i64 = 9223372036854775807", 2**63 - 1),
        ("price = 2.4", "2.40"),
        ("price = '-1e-2'", "-0.01"),
        ("wide = 99999999999999999999999999999999999999", "9" * 38),
        ("f64 = 0.1", 0.1),
        ("f32 = 0.1", 0.10000000149011612),
        ("raw = X'00FF'", "00ff"),
        ("day = DATE '1970-01-02'", 1),
        ("at = '1970-01-01T01:00:00+01:00'", 0),
        ("at = DATE '1970-01-02'", 86_400_000_000),
        ("at_ms = '1970-01-01 00:00:01.5'", 1_500),
        ("clock = '1970-01-01T00:00:01'", 1_000_000),
    ],
)
def test_literals_become_values_of_their_column_type(text, value):
    condition = parse_filter(text, SCHEMA).root
    assert isinstance(condition, Comparison)
    assert condition.value == value
    assert type(condition.value) is type(value)


def test_list_contains_each_value_once():
    assert parse_filter("price IN (1, 1.0, '1.00', 2)", SCHEMA).root == OneOf(
        column=Column(path=("price",), type="decimal(5, 2)"), values=("1.00", "2.00")
    )


def test_comparison_with_null_reads_no_column():
    selection = parse_filter("i8 = NULL", SCHEMA)
    assert selection.root == Constant(value=None)
    assert selection.columns() == frozenset()


def test_filter_limits_are_enforced():
    longest = "flag AND " * 1_110 + "flag"
    assert len(longest) < 10_000
    assert parse_filter(longest, SCHEMA).columns() == {"flag"}
    assert parse_filter("(" * 50 + "flag" + ")" * 50, SCHEMA).columns() == {"flag"}
    assert parse_filter("NOT (" * 25 + "flag" + ")" * 25, SCHEMA).columns() == {"flag"}
    assert parse_filter("i8 IN (" + "1," * 4_990 + "1)", SCHEMA).columns() == {"i8"}
    assert "10,001 characters" in refused("flag" + " " * 9_997).detail
    assert "too deeply" in refused("(" * 51 + "flag" + ")" * 51).detail
    assert "too deeply" in refused("NOT " * 51 + "flag").detail
    assert "too deeply" in refused("NOT (" * 26 + "flag" + ")" * 26).detail


def test_filter_within_its_limits_parses_on_a_deep_stack():
    def below(frames):
        return below(frames - 1) if frames else parse_filter("NOT (" * 25 + "flag" + ")" * 25, SCHEMA)

    assert below(300).columns() == {"flag"}


SIGNS = "( ) , . - = != <> < <= > >= ; :: [ ] { } {# #} {{ }} -- /* */ /*+ ' \" ` @ $ $$ ? : | || & ^ ~ + * / % ! \\"
WORDS = """AND OR NOT IS IN BETWEEN LIKE ESCAPE NULL TRUE FALSE DATE TIMESTAMP X N B SELECT FROM CASE WHEN END INTERVAL
    ARRAY STRUCT MAP CAST UNNEST VALUES WITH EXISTS ANY ALL i8 flag word place inner at day"""
LITERALS = "'a' '2026-11-21' X'00' 1 1.5 1e5 0x1 0b1 1e 1e999999999"
BLANKS = ["\n", "\r", "\t", "\x00", "\xa0", "é", "\u2028", "\U0001f600", "\ud800"]
PIECES = st.sampled_from([*SIGNS.split(), *WORDS.split(), *LITERALS.split(), *BLANKS])


@settings(max_examples=examples(100), deadline=None)
@given(
    text=st.one_of(
        st.text(max_size=200),
        st.binary(max_size=200).map(lambda found: found.decode("utf-8", errors="surrogateescape")),
        st.lists(PIECES, max_size=30).map(" ".join),
        st.lists(PIECES, max_size=30).map("".join),
        st.tuples(PIECES, st.integers(1, 3_000)).map(lambda piece: (piece[0] + " ") * piece[1]),
        st.tuples(st.lists(PIECES, max_size=4), st.integers(1, 1_000)).map(
            lambda found: "".join(found[0]) * found[1]
        ),
    )
)
@example("(" * 9_999)
@example("i8 IN (" * 1_400)
@example("NOT " * 2_500)
@example("- " * 4_999)
@example("i8 = " * 2_000)
@example("place." * 1_600)
@example("i8 BETWEEN " * 900)
@example("ARRAY<" * 1_600)
@example("CASE WHEN " * 900)
@example("'" * 9_999)
@example("''" * 4_999)
@example('"' * 9_999)
@example("-- " * 3_000)
@example("/*" * 4_999)
@example("/**/" * 2_499)
@example("\n" * 9_999)
def test_any_text_is_parsed_or_refused_quickly(text):
    begun = time.monotonic()
    outcome = filter_or_error(text)
    if isinstance(outcome, InvalidFilter):
        assert len(outcome.detail) < 1_000
        assert outcome.facts["position"] in {None, *range(len(text) + 1)}
    else:
        assert parse_filter(outcome.text, SCHEMA) == outcome
    assert time.monotonic() - begun < 5


def filter_or_error(text):
    try:
        return parse_filter(text, SCHEMA)
    except InvalidFilter as error:
        return error


def test_error_describes_the_documented_language():
    error = refused("i8 ~ 1")
    assert re.search(r"columns, literals, .* AND, OR, NOT and parentheses", error.facts["expected"])
