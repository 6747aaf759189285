"""Hints of readers: what they select at least."""

from __future__ import annotations

import json
from typing import Any

import pytest

from app.kernel.delta.predicates import HINTS_MAX, hinted_filter
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.prune import may_match

SCHEMA = Schema(
    id=1,
    fields=(
        Field(id=1, name="id", type="int64"),
        Field(id=2, name="Land", type="string"),
        Field(id=3, name="day", type="date"),
    ),
)
FILE = {
    "1": ColumnStatistics(minimum=10, maximum=20, null_count=0),
    "2": ColumnStatistics(minimum="c", maximum="f", null_count=0),
    "3": ColumnStatistics(minimum="2026-01-10", maximum="2026-01-20", null_count=0),
}


def selects(predicates: list[str], json_predicate: Any = None, exclude: frozenset[str] = frozenset()) -> bool:
    """Whether the file may have rows that the hints select."""
    text = json_predicate if isinstance(json_predicate, str | None) else json.dumps(json_predicate)
    condition = hinted_filter(SCHEMA, exclude, predicates, text)
    return condition is None or may_match(condition, FILE, SCHEMA, 5)


def column(name: str, kind: str = "long") -> dict[str, str]:
    return {"op": "column", "name": name, "valueType": kind}


def literal(value: Any, kind: str = "long") -> dict[str, Any]:
    return {"op": "literal", "value": value, "valueType": kind}


def op(name: str, *children: Any) -> dict[str, Any]:
    return {"op": name, "children": list(children)}


@pytest.mark.parametrize(
    ("predicates", "expected"),
    [
        ([], True),
        (["id = 15"], True),
        (["id = 25"], False),
        (["25 < id"], False),
        (["id >= 10", "Land <> 'x'"], True),
        (["id >= 10", "Land > 'x'"], False),
        (["Land IS NULL"], False),
        (["day < '2026-01-01'"], False),
        (["this is no condition"], True),
        (["missing = 1"], True),
        (["missing = 1", "id = 25"], False),
        (["id = 15"] * HINTS_MAX + ["id = 25"], True),
        (["id = 25 " + " " * 20_000], True),
    ],
)
def test_conditions_prune(predicates: list[str], expected: bool) -> None:
    assert selects(predicates) is expected


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (op("equal", column("id"), literal("15")), True),
        (op("equal", column("id"), literal("25")), False),
        (op("lessThan", literal(25), column("ID")), False),
        (op("greaterThanOrEqual", column("land", "string"), literal("g", "string")), False),
        (op("lessThanOrEqual", column("day", "date"), literal("2026-01-09", "date")), False),
        (op("and", op("greaterThan", column("id"), literal(5)), op("isNull", column("id"))), False),
        (op("or", op("isNull", column("id")), op("equal", column("id"), literal(12))), True),
        (op("not", op("isNull", column("id"))), True),
        (op("not", op("greaterThan", column("id"), literal(5))), False),
        (op("equal", column("nothing"), literal("25")), True),
        (op("equal", column("id"), literal("no number")), True),
        (op("equal", column("id"), literal("25", "interval")), True),
        (op("between", column("id"), literal("25")), True),
        ("{", True),
        ("[]", True),
        ("[" * 100_000, True),
    ],
)
def test_trees_prune(predicate: Any, expected: bool) -> None:
    assert selects([], predicate) is expected


def test_deep_tree_selects_everything() -> None:
    predicate = op("equal", column("id"), literal("25"))
    for _ in range(40):
        predicate = op("not", op("not", predicate))
    assert selects([], predicate)


def test_hidden_columns_prune_nothing() -> None:
    assert selects(["id = 25"], op("equal", column("ID"), literal("25")), frozenset({"id"}))
    assert not selects(["id = 25", "Land > 'x'"], None, frozenset({"id"}))
