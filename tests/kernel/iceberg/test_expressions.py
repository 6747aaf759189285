"""Iceberg's expressions as conditions: they hold for each row that the expression selects."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from app.kernel.iceberg import expressions
from app.kernel.iceberg.expressions import (
    DEPTH_MAX,
    LEAVES_MAX,
    PARTS_MAX,
    InvalidExpression,
    expression_filter,
)
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.tree import And, Condition, Constant, Or
from tests.kernel.iceberg.tables import dataset

SCHEMA = dataset(
    {"n": "int32", "x": "float", "s": "string", "d": "date", "u": "uuid", "l": "list<int32>"}
).schema
ROWS = [
    {"n": n, "x": x, "s": s, "d": None, "u": None, "l": None}
    for n in (None, -1, 0, 3)
    for x in (None, 0.5, 2.0)
    for s in (None, "", "ab", "a%", "b")
]
TABLE = pa.Table.from_pylist(ROWS, schema=pa.schema([field.to_arrow() for field in SCHEMA.fields]))
VALUES: dict[str, list[Any]] = {
    "n": [-1, 0, 2, 3, 2**40],
    "x": [0.5, 1, 2.0],
    "s": ["", "a", "ab", "a%", "b"],
}
COMPARISONS = {
    "eq": lambda a, b: a is not None and a == b,
    "not-eq": lambda a, b: a is None or a != b,
    "lt": lambda a, b: a is not None and a < b,
    "lt-eq": lambda a, b: a is not None and a <= b,
    "gt": lambda a, b: a is not None and a > b,
    "gt-eq": lambda a, b: a is not None and a >= b,
}


def expression(random: Random, depth: int = 3) -> dict[str, Any]:
    if depth and random.random() < 0.6:
        kind = random.choice(["and", "or", "not"])
        if kind == "not":
            return {"type": "not", "child": expression(random, depth - 1)}
        return {"type": kind, **{side: expression(random, depth - 1) for side in ("left", "right")}}
    term = random.choice(["n", "x", "s"])
    form = random.random()
    if form < 0.2:
        return {"type": random.choice(["is-null", "not-null"]), "term": term}
    if form < 0.4:
        values = random.sample(VALUES[term], 2)
        return {"type": random.choice(["in", "not-in"]), "term": term, "values": values}
    if form < 0.5:
        return {"type": random.choice(["starts-with", "not-starts-with"]), "term": "s", "value": "a%"}
    return {"type": random.choice(list(COMPARISONS)), "term": term, "value": random.choice(VALUES[term])}


def holds(node: dict[str, Any], row: dict[str, Any]) -> bool:
    """Iceberg's evaluation of an expression."""
    match node["type"]:
        case "not":
            return not holds(node["child"], row)
        case "and":
            return holds(node["left"], row) and holds(node["right"], row)
        case "or":
            return holds(node["left"], row) or holds(node["right"], row)
    value = row[node["term"]]
    match node["type"]:
        case "is-null":
            return value is None
        case "not-null":
            return value is not None
        case "in":
            return value in node["values"]
        case "not-in":
            return value not in node["values"]
        case "starts-with":
            return value is not None and value.startswith(node["value"])
        case "not-starts-with":
            return value is None or not value.startswith(node["value"])
    return bool(COMPARISONS[node["type"]](value, node["value"]))


def test_condition_holds_for_each_selected_row() -> None:
    random = Random(1)
    exact = 0
    for _ in range(400):
        node = expression(random)
        try:
            found = matches(expression_filter(node, SCHEMA), TABLE).tolist()
        except KeyError:
            # A part of it may be anything: the condition is on a column that there is not.
            continue
        wanted = [holds(node, row) for row in ROWS]
        assert all(got for got, selected in zip(found, wanted, strict=True) if selected), node
        exact += found == wanted
    assert exact > 100


def either(*nodes: dict[str, Any]) -> dict[str, Any]:
    """The disjunction, as a tree of little depth."""
    if len(nodes) == 1:
        return nodes[0]
    half = len(nodes) // 2
    return {"type": "or", "left": either(*nodes[:half]), "right": either(*nodes[half:])}


def test_values_that_a_column_is_compared_with_are_one_predicate() -> None:
    values = list(range(400))
    node = either(*({"type": "eq", "term": "n", "value": value} for value in values))
    together = expression_filter({"type": "in", "term": "n", "values": values}, SCHEMA)
    assert expression_filter(node, SCHEMA) == together
    negation = expression_filter({"type": "not", "child": node}, SCHEMA)
    assert matches(negation, TABLE).tolist() == [row["n"] in (None, -1) for row in ROWS]


def leaves(condition: Condition) -> int:
    match condition:
        case And(operands=operands) | Or(operands=operands):
            return sum(map(leaves, operands))
        case Constant():
            return 0
    return 1


def test_number_of_predicates_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges = [{"type": "gt", "term": "n", "value": number} for number in range(500)]
    anything = expression_filter({"type": "is-nan", "term": "x"}, SCHEMA)
    assert expression_filter(either(*ranges), SCHEMA) == anything
    every = expression_filter({"type": "not", "child": either(*ranges)}, SCHEMA)
    assert LEAVES_MAX / 2 <= leaves(every.root) <= LEAVES_MAX
    monkeypatch.setattr(expressions, "LEAVES_MAX", 2)
    random = Random(2)
    smaller = 0
    for _ in range(200):
        node = expression(random)
        condition = expression_filter(node, SCHEMA)
        assert leaves(condition.root) <= 2
        if condition == anything:
            smaller += 1
            continue
        found = matches(condition, TABLE).tolist()
        assert all(got for got, row in zip(found, ROWS, strict=True) if holds(node, row)), node
    assert 0 < smaller < 200


def tree_of_constants(depth: int) -> dict[str, Any]:
    """An expression with `2**depth` constants."""
    if depth == 0:
        return {"type": "true"}
    side = tree_of_constants(depth - 1)
    return {"type": "and", "left": side, "right": side}


@pytest.mark.parametrize(
    "node",
    [
        {"type": "eq", "term": "l", "value": 1},
        {"type": "eq", "term": "l.element", "value": 1},
        {"type": "eq", "term": {"type": "transform", "transform": "day", "term": "d"}, "value": 1},
        {"type": "is-nan", "term": "x"},
        {"type": "eq", "term": "n", "value": "text"},
        {"type": "eq", "term": "d", "value": "no date"},
        {"type": "in", "term": "n", "values": [1, "text"]},
        {"type": "eq", "term": "_file", "value": "a"},
    ],
)
def test_what_has_no_form_may_be_anything(node: dict[str, Any]) -> None:
    anything = expression_filter({"type": "is-nan", "term": "x"}, SCHEMA)
    assert expression_filter(node, SCHEMA) == anything


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"type": "eq", "term": "d", "value": 19_723}, {"type": "eq", "term": "d", "value": "2024-01-01"}),
        (
            {
                "type": "eq",
                "left": {"type": "reference", "name": "n"},
                "right": {"type": "literal", "value": 3},
            },
            {"type": "eq", "term": "n", "value": 3},
        ),
        (
            {"type": "eq", "term": {"type": "reference", "id": 1}, "value": 3},
            {"type": "eq", "term": "n", "value": 3},
        ),
        (
            {"type": "eq", "term": "u", "value": "00000000000000000000000000000001"},
            {"type": "eq", "term": "u", "value": "00000000-0000-0000-0000-000000000001"},
        ),
        ({"type": "true"}, True),
        ({"type": "not", "child": True}, False),
    ],
)
def test_forms_that_are_equal(left: Any, right: Any) -> None:
    assert expression_filter(left, SCHEMA) == expression_filter(right, SCHEMA)


def test_names_are_compared_as_requested() -> None:
    node = {"type": "eq", "term": "N", "value": 3}
    assert expression_filter(node, SCHEMA, case_sensitive=False).columns() == {"n"}
    with pytest.raises(InvalidExpression, match="no column 'N'"):
        expression_filter(node, SCHEMA)


@pytest.mark.parametrize(
    "node",
    [
        None, 1, "text", [], {}, {"type": 1}, {"type": "xor"}, {"type": "and", "left": True},
        {"type": "eq", "term": 1, "value": 1}, {"type": "in", "term": "n", "values": 1},
        {"type": "in", "term": "n", "values": [1] * (PARTS_MAX + 1)},
        tree_of_constants(10),
    ],
)  # fmt: skip
def test_invalid_expressions_are_refused(node: Any) -> None:
    with pytest.raises(InvalidExpression):
        expression_filter(node, SCHEMA)


def test_depth_is_bounded() -> None:
    node: Any = True
    for _ in range(DEPTH_MAX + 1):
        node = {"type": "not", "child": node}
    with pytest.raises(InvalidExpression, match="deep"):
        expression_filter(node, SCHEMA)
