"""The hints of a reader, as conditions that prune files.

A hint may be ignored: readers filter the rows themselves. So a condition holds for at least the rows that the hint
selects, and what cannot be read selects everything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec

from app.kernel.format.errors import HeadwaterError
from app.kernel.format.schema.schema import Schema
from app.kernel.iceberg.expressions import InvalidExpression, expression_filter
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.tree import And, Filter

HINTS_MAX: Final = 100
"""How many hints are read. Those behind them select everything."""
HINT_CHARACTERS_MAX: Final = 10_000
_DEPTH_MAX: Final = 32
_OPERATORS: Final = {
    "equal": "eq", "lessThan": "lt", "lessThanOrEqual": "lt-eq", "greaterThan": "gt",
    "greaterThanOrEqual": "gt-eq",
}  # fmt: skip
_TURNED: Final = {"eq": "eq", "lt": "gt", "lt-eq": "gt-eq", "gt": "lt", "gt-eq": "lt-eq"}


def hinted_filter(
    schema: Schema, exclude: Collection[str], predicates: Sequence[str], json_predicate: str | None
) -> Filter | None:
    """The condition of all hints that can be read; None for none. `exclude`: the names of columns without values."""
    parts = [_of_sql(text, schema, exclude) for text in predicates[:HINTS_MAX]]
    if json_predicate is not None:
        parts.append(_of_json(json_predicate, schema, exclude))
    filters = [each for each in parts if each is not None]
    if len(filters) > 1:
        return Filter(text="", root=And(operands=tuple(each.root for each in filters)))
    return filters[0] if filters else None


def _of_sql(text: str, schema: Schema, exclude: Collection[str]) -> Filter | None:
    if len(text) > HINT_CHARACTERS_MAX:
        return None
    try:
        return _shown(parse_filter(text, schema), exclude)
    except HeadwaterError:
        return None


def _of_json(text: str, schema: Schema, exclude: Collection[str]) -> Filter | None:
    if len(text) > HINTS_MAX * HINT_CHARACTERS_MAX:
        return None
    try:
        expression = _expression(msgspec.json.decode(text), 0)
        return _shown(expression_filter(expression, schema, case_sensitive=False), exclude)
    except (InvalidExpression, msgspec.DecodeError, RecursionError, ValueError):
        return None


def _shown(condition: Filter, exclude: Collection[str]) -> Filter | None:
    return None if set(condition.columns()) & set(exclude) else condition


def _expression(node: Any, depth: int) -> dict[str, Any]:
    """A node as an expression of Iceberg. Raises InvalidExpression for what is not one."""
    children = node.get("children", []) if isinstance(node, dict) else None
    if not isinstance(children, list) or depth > _DEPTH_MAX:
        raise InvalidExpression("a predicate is an object with operands")
    match node.get("op"), len(children):
        case "and" | "or" as kind, count if count:
            parts = [_expression(child, depth + 1) for child in children]
            whole = parts[0]
            for part in parts[1:]:
                whole = {"type": kind, "left": whole, "right": part}
            return whole
        case "not", 1:
            return {"type": "not", "child": _expression(children[0], depth + 1)}
        case "isNull", 1:
            return {"type": "is-null", "term": _column(children[0])}
        case str() as kind, 2 if kind in _OPERATORS:
            return _comparison(_OPERATORS[kind], *children)
    raise InvalidExpression("a predicate has another operator")


def _comparison(kind: str, first: Any, second: Any) -> dict[str, Any]:
    if isinstance(first, dict) and first.get("op") == "literal":
        kind, first, second = _TURNED[kind], second, first
    return {"type": kind, "term": _column(first), "value": _literal(second)}


def _column(node: Any) -> str:
    if not isinstance(node, dict) or node.get("op") != "column" or not isinstance(node.get("name"), str):
        raise InvalidExpression("an operand is no column")
    return str(node["name"])


def _literal(node: Any) -> Any:
    if not isinstance(node, dict) or node.get("op") != "literal":
        raise InvalidExpression("an operand is no literal")
    value, kind = node.get("value"), node.get("valueType")
    match kind:
        case "int" | "long":
            return int(str(value))
        case "float" | "double":
            return float(str(value))
        case "bool" if str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        case "string" | "date" | "timestamp":
            return str(value)
    raise InvalidExpression("a literal has another type")
