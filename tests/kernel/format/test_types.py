"""The grammar of data types."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.schema import types
from app.kernel.format.schema.types import TypeSyntaxError, parse_type, to_arrow

names = st.text(min_size=1, max_size=8).filter(lambda text: text.isprintable() and text.strip() == text)
leaves = st.one_of(
    st.sampled_from(types.PLAIN_TYPES),
    st.tuples(st.integers(1, 38), st.integers(0, 38))
    .filter(lambda p: p[1] <= p[0])
    .map(lambda p: types.Decimal(*p)),
    st.builds(types.Timestamp, unit=st.sampled_from(["ms", "us"]), zoned=st.booleans()),
)
keys = st.sampled_from(["string", "int64", "date"]).map(parse_type)
any_type = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(types.List, inner),
        st.builds(types.Map, keys, inner),
        st.dictionaries(names, inner, min_size=1, max_size=3).map(lambda d: types.Struct(tuple(d.items()))),
    ),
    max_leaves=5,
)


@given(any_type)
def test_text_of_a_type_parses_to_that_type(data_type: types.DataType) -> None:
    assert parse_type(str(data_type)) == data_type
    assert isinstance(to_arrow(data_type), pa.DataType)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("BIGINT", "int64"),
        (" decimal( 10 ,2)", "decimal(10, 2)"),
        ("timestamp(us)", "timestamp"),
        ("timestamp_ntz(ms)", "timestamp_ntz(ms)"),
        ("struct<a:int,`b c`:list<text>>", "struct<a: int32, `b c`: list<string>>"),
    ],
)
def test_type_spellings_have_one_canonical_text(text: str, canonical: str) -> None:
    assert str(parse_type(text)) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        "varchar",
        "decimal",
        "decimal(5)",
        "decimal(3, 4)",
        "decimal(0, 0)",
        "list<",
        "struct<",
        "struct<a",
        "list<int32>>",
        "map<string>",
        "struct<>",
        "struct<a: int32, a: int32>",
        "timestamp(ns)",
        "int32 int32",
        "map<list<int32>, int32>",
        "list<" * 20 + "int32" + ">" * 20,
    ],
)
def test_invalid_type_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(TypeSyntaxError, match=r"\w+"):
        parse_type(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id:int64", [("id", "int64")]),
        (" id : long , p:decimal(9,2)", [("id", "int64"), ("p", "decimal(9, 2)")]),
        ("a:map<string, struct<x: int8, y: list<date>>>,`b, c`:string", None),
    ],
)
def test_text_of_columns_has_their_types(text: str, columns: list[tuple[str, str]] | None) -> None:
    expected = columns or [("a", "map<string, struct<x: int8, y: list<date>>>"), ("b, c", "string")]
    assert [(name, str(data_type)) for name, data_type in types.parse_columns(text)] == expected


@pytest.mark.parametrize(
    "text", ["", "id", "id:", "id:int64,", "id:int64>", "id:int64,,a:date", "id:int65", ":date"]
)
def test_invalid_text_of_columns_is_refused(text: str) -> None:
    with pytest.raises(types.TypeSyntaxError):
        types.parse_columns(text)


def test_struct_with_too_many_members_is_refused() -> None:
    members = [f"m{number}: int8" for number in range(types.MEMBERS_MAX + 1)]
    assert isinstance(parse_type(f"struct<{', '.join(members[1:])}>"), types.Struct)
    with pytest.raises(TypeSyntaxError, match="at most 2000 members"):
        parse_type(f"struct<{', '.join(members)}>")
    with pytest.raises(TypeSyntaxError, match="nest"):
        parse_type("list<" * 1_000_000)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0190163d8694739baea5966c26f8ad91",
        "{0190163d-8694-739b-aea5-966c26f8ad91}",
        "urn:uuid:0190163d-8694-739b-aea5-966c26f8ad91",
        "0190-163d-8694-739b-aea5-966c-26f8-ad91",
        "0190163d-8694-739b-aea5-966c26f8ad9g",
        " 0190163d-8694-739b-aea5-966c26f8ad91",
        "0190163d-8694-739b-aea5-966c26f8ad91\n",
        "٠190163d-8694-739b-aea5-966c26f8ad91",
    ],
)
def test_uuid_has_one_form(text: str) -> None:
    identifier = types.PLAIN_TYPES[-1]
    assert str(identifier) == "uuid"
    with pytest.raises(types.RefusedText, match="8-4-4-4-12"):
        identifier.read(text)
    with pytest.raises(types.Undecodable):
        identifier.parse(pa.array([None, text]))


def test_uuids_of_any_slice_have_their_texts() -> None:
    texts = [f"0190163d-8694-739b-aea5-{number:012x}" for number in range(5)]
    array = types.PLAIN_TYPES[-1].parse(pa.array([None, *texts, None]))
    for first in range(7):
        part = array.slice(first, 3)
        assert types.PLAIN_TYPES[-1].texts(part).to_pylist() == [None, *texts, None][first : first + 3]
