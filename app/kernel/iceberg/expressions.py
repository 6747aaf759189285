"""Iceberg's filter expressions in JSON, as conditions that prune files.

A condition holds for at least the rows that the expression selects: what it has no form for may be true or false. So
clients filter the rows of the planned files by the expression itself. Iceberg's logic has two values: `not-eq` and
`not-in` select nulls, and the negation of any predicate may.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import BINARY, BOOLEAN, DATE, FlatType, Timestamp
from app.kernel.format.schema.types.uuids import UUID
from app.kernel.sql.conditions.literals import Kind, Literal, Unfit, compared, one_of
from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    Filter,
    IsNull,
    Like,
    Not,
    OneOf,
    Operator,
    Or,
    Value,
)

DEPTH_MAX: Final = 64
"""How deep expressions may be nested."""
PARTS_MAX: Final = 1_000
"""How many parts an expression may have: predicates, literals of lists, constants, and what combines them."""
LEAVES_MAX: Final = 64
"""How many predicates a condition has, after values that one column is compared with are one predicate."""
_OPERATORS: Final = {
    "eq": Operator.EQUAL,
    "lt": Operator.LESS,
    "lt-eq": Operator.LESS_OR_EQUAL,
    "gt": Operator.GREATER,
    "gt-eq": Operator.GREATER_OR_EQUAL,
}
_NEGATIONS: Final = {
    "eq": "not-eq", "not-eq": "eq", "lt": "gt-eq", "gt-eq": "lt", "gt": "lt-eq", "lt-eq": "gt",
    "in": "not-in", "not-in": "in", "is-null": "not-null", "not-null": "is-null",
    "is-nan": "not-nan", "not-nan": "is-nan", "starts-with": "not-starts-with", "not-starts-with": "starts-with",
}  # fmt: skip
# A column that no schema has: nothing is known of it.
_ANYTHING: Final = IsNull(column=Column(path=("",), type="string"))
_NOTHING: Final = Constant(value=False)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class InvalidExpression(ValueError):
    """An expression that is not one of the protocol's, is too large, or names a column that there is not."""


def expression_filter(expression: Any, schema: Schema, *, case_sensitive: bool = True) -> Filter:
    """The condition of an expression on the columns of a schema. Raises InvalidExpression.

    It has at most LEAVES_MAX predicates: what others of the expression select may be anything.
    """
    root = _Expressions(schema, case_sensitive).condition(expression, negation=False)
    return Filter(text="", root=_Leaves().bounded(root))


class _Expressions:
    def __init__(self, schema: Schema, case_sensitive: bool) -> None:
        self._fold: Callable[[str], str] = str if case_sensitive else str.casefold
        self._columns: dict[str, Column | None] = {}
        self._by_id: dict[int, Column | None] = {}
        for field in schema.fields:
            is_flat = isinstance(field.data_type(), FlatType)
            column = Column(path=(field.name,), type=field.type) if is_flat else None
            self._columns[self._fold(field.name)] = column
            self._by_id[field.id] = column
        self._left = PARTS_MAX

    def condition(self, node: Any, *, negation: bool, depth: int = 0) -> Condition:
        """The condition of an expression, or of its negation."""
        if depth > DEPTH_MAX:
            raise InvalidExpression(f"the filter is nested more than {DEPTH_MAX} deep")
        self._count(1)
        if isinstance(node, bool):
            return Constant(value=node is not negation)
        if not isinstance(node, Mapping) or not isinstance(node.get("type"), str):
            raise InvalidExpression("a filter is true, false, or an object with a type")
        match node["type"]:
            case "true" | "false" as text:
                return Constant(value=(text == "true") is not negation)
            case "not":
                return self.condition(node.get("child"), negation=not negation, depth=depth + 1)
            case "and" | "or" as text:
                parts = tuple(
                    self.condition(node.get(side), negation=negation, depth=depth + 1)
                    for side in ("left", "right")
                )
                return _both(parts) if (text == "and") is not negation else _either(parts)
            case text if text in _NEGATIONS:
                return self._predicate(_NEGATIONS[text] if negation else text, node, negation=negation)
        raise InvalidExpression(f"a filter has no type {node['type'][:100]!r}")

    def _predicate(self, kind: str, node: Mapping[str, Any], *, negation: bool) -> Condition:
        column = self._column(_first(node, "term", "child", "left"))
        if column is None:
            return _ANYTHING
        match kind:
            case "is-null":
                return IsNull(column=column)
            case "not-null":
                return Not(operand=IsNull(column=column))
            case "in" | "not-in":
                condition = self._one_of(column, node.get("values"))
            case "starts-with" if column.type == "string":
                condition = _starts(column, _plain(_first(node, "value", "right")))
            case "eq" | "not-eq":
                condition = _compared(column, Operator.EQUAL, _plain(_first(node, "value", "right")))
            case "lt" | "lt-eq" | "gt" | "gt-eq":
                condition = _compared(column, _OPERATORS[kind], _plain(_first(node, "value", "right")))
            case _:
                return _ANYTHING
        if kind in ("not-eq", "not-in"):
            condition = _ANYTHING if condition is _ANYTHING else Not(operand=condition)
        if negation or kind in ("not-eq", "not-in"):
            return _either([condition, IsNull(column=column)])
        return condition

    def _one_of(self, column: Column, values: Any) -> Condition:
        if isinstance(values, Mapping):
            values = values.get("values")
        if not isinstance(values, Sequence) or isinstance(values, str):
            raise InvalidExpression("the values of in and not-in are a list")
        self._count(len(values))
        parts = [_compared(column, Operator.EQUAL, _plain(value)) for value in values]
        if not all(_is_exact(part) for part in parts):
            return _ANYTHING
        return one_of(column, parts) if parts else _NOTHING

    def _column(self, term: Any) -> Column | None:
        """The column that a term names; None for a part of one, or a transform of one."""
        if isinstance(term, Mapping):
            if term.get("type") != "reference":
                return None
            if isinstance(term.get("id"), int):
                return self._by_id.get(term["id"])
            term = _first(term, "name", "term")
        if not isinstance(term, str):
            raise InvalidExpression("a predicate names a column")
        name = self._fold(term)
        if name in self._columns:
            return self._columns[name]
        if name.startswith("_") or any(name.startswith(f"{column}.") for column in self._columns):
            return None
        raise InvalidExpression(f"there is no column {term[:100]!r}")

    def _count(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise InvalidExpression(f"the filter has more than {PARTS_MAX:,} parts")


class _Leaves:
    """Leaves out what exceeds the number of predicates, each of which is compared with each file and partition."""

    def __init__(self) -> None:
        self._left = LEAVES_MAX

    def bounded(self, condition: Condition) -> Condition:
        """The condition without what may be anything; it holds for at least the same rows."""
        match condition:
            case And(operands=operands):
                return _both([self.bounded(operand) for operand in operands])
            case Or(operands=operands):
                return _either([self.bounded(operand) for operand in operands])
            case Constant():
                return condition
        self._left -= 1
        return _ANYTHING if self._left < 0 else condition


def _both(operands: Sequence[Condition]) -> Condition:
    operands = [operand for operand in operands if operand is not _ANYTHING]
    if len(operands) < 2:
        return operands[0] if operands else _ANYTHING
    return And(operands=tuple(operands))


def _either(operands: Sequence[Condition]) -> Condition:
    """The disjunction. Values that one column is compared with are one predicate."""
    if any(operand is _ANYTHING for operand in operands):
        return _ANYTHING
    values: dict[Column, dict[Value, None]] = {}
    others: list[Condition] = []
    for operand in operands:
        for part in operand.operands if isinstance(operand, Or) else (operand,):
            match part:
                case Comparison(column=column, operator=Operator.EQUAL, value=value):
                    values.setdefault(column, {})[value] = None
                case OneOf(column=column):
                    values.setdefault(column, {}).update(dict.fromkeys(part.values))
                case _:
                    others.append(part)
    members = [_among(column, tuple(distinct)) for column, distinct in values.items()]
    parts = [*members, *others]
    return parts[0] if len(parts) == 1 else Or(operands=tuple(parts))


def _among(column: Column, values: tuple[Value, ...]) -> Condition:
    if len(values) == 1:
        return Comparison(column=column, operator=Operator.EQUAL, value=values[0])
    return OneOf(column=column, values=values)


def _first(node: Mapping[str, Any], *names: str) -> Any:
    """The first of these members that the object has."""
    return next((node[name] for name in names if name in node), None)


def _plain(literal: Any) -> Any:
    return literal.get("value") if isinstance(literal, Mapping) else literal


def _is_exact(condition: Condition) -> bool:
    """Whether a comparison has the outcome of the literal for every value."""
    return isinstance(condition, Comparison | And)


def _starts(column: Column, prefix: Any) -> Condition:
    if not isinstance(prefix, str):
        return _ANYTHING
    pattern = "".join(f"\\{letter}" if letter in "%_\\" else letter for letter in prefix)
    return Like(column=column, pattern=f"{pattern}%")


def _compared(column: Column, operator: Operator, value: Any) -> Condition:
    """The comparison; what may be anything, for a value that is not of the column's type."""
    literal = _literal(column.flat_type(), value)
    if literal is None:
        return _ANYTHING
    try:
        return compared(column, operator, literal)
    except (Unfit, ValueError, ArithmeticError):
        return _ANYTHING


def _literal(kind: FlatType, value: Any) -> Literal | None:
    """The literal in a value of the protocol, which has numbers of days and microseconds, too."""
    match value:
        case bool():
            return Literal(kind=Kind.BOOLEAN, text="TRUE" if value else "FALSE") if kind == BOOLEAN else None
        case int() if kind == DATE:
            return _day(value)
        case int() if isinstance(kind, Timestamp):
            return _moment(value)
        case int() | float():
            return Literal(kind=Kind.NUMBER, text=repr(value))
        case str() if kind == UUID:
            return Literal(kind=Kind.STRING, text=_uuid(value))
        case str() if kind == BINARY:
            return Literal(kind=Kind.BINARY, text=value)
        case str():
            return Literal(kind=Kind.STRING, text=value)
    return None


def _day(days: int) -> Literal | None:
    try:
        return Literal(kind=Kind.STRING, text=(_EPOCH.date() + timedelta(days=days)).isoformat())
    except OverflowError:
        return None


def _moment(microseconds: int) -> Literal | None:
    try:
        moment = _EPOCH.replace(tzinfo=None) + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return Literal(kind=Kind.STRING, text=moment.isoformat())


def _uuid(text: str) -> str:
    """The text of a uuid, which is 16 bytes in hexadecimal digits in the published schema."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text
