"""The rows on one side of a row in an order, as filters: what bounds of files and row groups exclude.

Nulls come last in both directions (`app.kernel.sql.read_order`).
"""

from __future__ import annotations

from typing import Any, Final

from app.kernel.format.errors import InvalidFilter
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import BOOLEAN, FlatType
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.tree import And, Filter
from app.kernel.sql.read_order import ReadOrder

# The literal of a longer text could exceed the length of a filter. Bounds of such texts are not kept either.
_LITERAL_CHARACTERS_MAX: Final = 1_000


def at_or_before(schema: Schema, key: ReadOrder, value: Any) -> Filter | None:
    """The rows whose value does not follow this one, a Python value of the column; None if all may be such rows."""
    return None if value is None else _compared(schema, key, value, ">=" if key.descending else "<=", "")


def at_or_after(schema: Schema, key: ReadOrder, value: Any) -> Filter | None:
    """The rows whose value does not precede this one, a Python value of the column; None if all may be such rows."""
    name = _quoted(key.column)
    if value is None:
        return parse_filter(f"{name} IS NULL", schema)
    return _compared(schema, key, value, "<=" if key.descending else ">=", f" OR {name} IS NULL")


def all_of(filters: list[Filter | None]) -> Filter | None:
    """The rows that every filter selects; None if there is no filter among them."""
    parts = [each for each in filters if each is not None]
    if len(parts) <= 1:
        return parts[0] if parts else None
    text = " AND ".join(f"({each.text})" for each in parts)
    return Filter(root=And(operands=tuple(each.root for each in parts)), text=text)


def _compared(schema: Schema, key: ReadOrder, value: Any, operator: str, rest: str) -> Filter | None:
    data_type = schema.field(key.column).data_type()
    if not isinstance(data_type, FlatType) or data_type == BOOLEAN:
        return None
    literal = data_type.sql_literal(value)
    if len(literal) > _LITERAL_CHARACTERS_MAX:
        return None
    try:
        return parse_filter(f"{_quoted(key.column)} {operator} {literal}{rest}", schema)
    except InvalidFilter:
        # A stored value that no literal is equal to, such as a text with characters that filters do not have.
        return None


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
