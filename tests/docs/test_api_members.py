"""The tables of members in documents are those of the OpenAPI document."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.docs.api_members import DOCUMENT, DOCUMENTS, ROOT, by_hand, marked, openapi, published
from tests.docs.api_values import default_of, shown_type


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_tables_equal_the_openapi_document(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == published(text), "write them again: make -o setup openapi"


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: page.name)
def test_marks_are_whole_and_name_each_thing_once(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    names = marked(text)
    assert names
    assert len(set(names)) == len(names)
    assert (
        len(names)
        == text.count("<!-- end -->")
        == len(re.findall(r"<!-- (?:members|kinds|parameters) of ", text))
    )


def test_each_page_with_marks_is_written() -> None:
    pages = (ROOT / "docs").glob("*.md")
    assert {page for page in pages if marked(page.read_text(encoding="utf-8"))} == set(DOCUMENTS)


def test_no_table_of_members_is_written_by_hand() -> None:
    assert by_hand(DOCUMENT.read_text(encoding="utf-8")) == []
    table = "| member | description |\n|---|---|\n| `name` | Its name. |\n"
    assert by_hand(f"Text.\n\n{table}") == ["| member | description |"]
    assert by_hand(f"<!-- members of CreateKey -->\n\n{table}\n<!-- end -->") == []
    assert by_hand("| limit | value |\n|---|---|\n| rows | 1 |\n") == []


def test_drift_is_noticed() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    begin = "<!-- members of CreateKey -->\n"
    assert text.count(begin) == 1
    assert published(text.replace(begin, f"{begin}| `other` | text | Another member. |\n")) == text
    member = next(iter(openapi()["components"]["schemas"]["CreateKey"]["properties"]))
    assert f"| `{member}` |" in text.partition(begin)[2].partition("<!-- end -->")[0]


def test_unknown_schema_is_an_error() -> None:
    with pytest.raises(KeyError):
        published("<!-- members of Nothing -->\n<!-- end -->")


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 1000, "format": "int64"}, "integer 1–1,000"),
        ({"type": "integer", "minimum": 0, "maximum": 2**63 - 1}, "integer"),
        ({"anyOf": [{"type": "string", "maxLength": 200}, {"type": "null"}]}, "text ≤ 200 characters"),
        ({"type": "string", "format": "date-time"}, "time"),
        ({"type": "array", "items": {"type": "string"}, "maxItems": 16}, "list ≤ 16 of text"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, "object of text"),
        ({"type": "object", "additionalProperties": True}, "object"),
        ({"$ref": "#/components/schemas/Kind"}, "`a`, `b`"),
        ({"$ref": "#/components/schemas/Thing"}, "`Thing`"),
    ],
)
def test_types_are_shown_with_their_limits(schema: dict[str, Any], shown: str) -> None:
    schemas = {"Kind": {"enum": ["a", "b"]}, "Thing": {"type": "object"}}
    assert shown_type({"components": {"schemas": schemas}}, schema) == shown


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        ({}, ""),
        ({"default": None}, ""),
        ({"default": []}, "empty"),
        ({"default": False}, "`false`"),
        ({"default": 3600}, "3,600"),
        ({"default": "x"}, "`x`"),
    ],
)
def test_defaults_are_shown(schema: dict[str, Any], shown: str) -> None:
    assert default_of(schema) == shown
