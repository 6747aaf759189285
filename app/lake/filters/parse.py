"""The text of a filter to the filter: its syntax, then its meaning for one schema."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Final

from sqlglot import exp

from app.codecs.faults import shown
from app.format.errors import InvalidFilter
from app.format.schema.schema import Schema
from app.format.schema.types import DataType, Struct
from app.lake.filters.grammar import BINARY, DATE, TIMESTAMP, canonical_text, invalid, parse_condition, place
from app.lake.filters.literals import Kind, Literal, Unfit, compared, one_of
from app.lake.filters.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    Filter,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
)

_OPERATORS: Final[Mapping[type[exp.Expr], Operator]] = {
    exp.EQ: Operator.EQUAL,
    exp.LT: Operator.LESS,
    exp.LTE: Operator.LESS_OR_EQUAL,
    exp.GT: Operator.GREATER,
    exp.GTE: Operator.GREATER_OR_EQUAL,
}
_TURNED_ROUND: Final = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}
_TYPED_LITERALS: Final = {DATE: Kind.DATE, TIMESTAMP: Kind.TIMESTAMP, BINARY: Kind.BINARY}
# Every part that a tree may have, with what may be said of it. Whatever else sqlglot reads is not our language.
_PARTS: Final[Mapping[type[exp.Expr], frozenset[str]]] = {
    **{kind: frozenset({"this", "expression"}) for kind in (*_OPERATORS, exp.NEQ, exp.And, exp.Or, exp.Is)},
    **{kind: frozenset({"this"}) for kind in (exp.Paren, exp.Not, exp.Neg, exp.Boolean, exp.DataType)},
    exp.Between: frozenset({"this", "low", "high"}),
    exp.Cast: frozenset({"this", "to"}),
    exp.Column: frozenset({"this", "table", "db", "catalog"}),
    exp.Dot: frozenset({"this", "expression"}),
    exp.Escape: frozenset({"this", "expression"}),
    exp.Identifier: frozenset({"this", "quoted"}),
    exp.In: frozenset({"this", "expressions"}),
    exp.Like: frozenset({"this", "expression", "negate"}),
    exp.Literal: frozenset({"this", "is_string"}),
    exp.Null: frozenset(),
}
_NAMES_SHOWN: Final = 5
# Arrow's time for a text grows with the number of signs in the pattern: thousands would take long for every row.
_PATTERN_CHARACTERS_MAX: Final = 1_000


def parse_filter(text: str, schema: Schema) -> Filter:
    """The filter that `text` describes for rows of `schema`. Raises InvalidFilter."""
    tree = parse_condition(text)
    for part in tree.walk():
        said = {name for name, value in part.args.items() if value}
        if type(part) not in _PARTS or not said <= _PARTS[type(part)]:
            reason = "this is not part of the language of filters"
            raise invalid(text, place(part), reason, "a condition on columns")
    return Filter(root=_Reader(text, schema).condition(tree), text=canonical_text(tree))


class _Reader:
    """Gives a syntax tree its meaning. Raises InvalidFilter throughout."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.types: dict[str, DataType] = {field.name: field.data_type() for field in schema.fields}

    def condition(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Paren():
                return self.condition(node.this)
            case exp.And():
                return And(operands=tuple(self.condition(operand) for operand in _chain(node)))
            case exp.Or():
                return Or(operands=tuple(self.condition(operand) for operand in _chain(node)))
            case exp.Not():
                return Not(operand=self.condition(node.this))
            case exp.Boolean():
                return Constant(value=bool(node.this))
            case exp.Null():
                return Constant(value=None)
            case exp.Column() | exp.Dot():
                return self._flag(node)
        return self._predicate(node)

    def _predicate(self, node: exp.Expr) -> Condition:
        match node:
            case exp.Is():
                return self._is_null(node)
            case exp.In():
                return self._one_of(node)
            case exp.Between():
                return self._between(node)
            case exp.Like() | exp.Escape():
                return self._like(node)
            case exp.NEQ():
                return Not(operand=self._comparison(node, Operator.EQUAL))
        if type(node) in _OPERATORS:
            return self._comparison(node, _OPERATORS[type(node)])
        raise self._fault(node, "this is no condition", "a comparison, or a boolean column")

    def _flag(self, node: exp.Expr) -> Condition:
        column = self._column(node)
        if column.type != "boolean":
            raise self._fault(node, f"a column of type {column.type} is no condition", "a comparison with it")
        return Comparison(column=column, operator=Operator.EQUAL, value=True)

    def _is_null(self, node: exp.Is) -> Condition:
        if not isinstance(node.expression, exp.Null):
            raise self._fault(node, "IS compares with NULL only", "IS NULL or IS NOT NULL")
        return IsNull(column=self._column(node.this))

    def _comparison(self, node: exp.Expr, operator: Operator) -> Condition:
        column, value = _bare(node.this), _bare(node.expression)
        if not _names_column(column):
            column, value, operator = value, column, _TURNED_ROUND[operator]
        if not _names_column(column) or _names_column(value):
            raise self._fault(
                node, "this does not compare a column with a literal", "one column and one literal"
            )
        return self._compared(self._column(column), operator, value)

    def _compared(self, column: Column, operator: Operator, value: exp.Expr) -> Condition:
        literal = self._literal(value)
        try:
            return compared(column, operator, literal)
        except Unfit as unfit:
            reason = f"this cannot be compared with {shown('.'.join(column.path))}"
            raise self._fault(value, reason, str(unfit)) from None

    def _one_of(self, node: exp.In) -> Condition:
        column = self._column(node.this)
        return one_of(column, [self._compared(column, Operator.EQUAL, value) for value in node.expressions])

    def _between(self, node: exp.Between) -> Condition:
        column = self._column(node.this)
        low = self._compared(column, Operator.GREATER_OR_EQUAL, node.args["low"])
        high = self._compared(column, Operator.LESS_OR_EQUAL, node.args["high"])
        return And(operands=(low, high))

    def _like(self, node: exp.Like | exp.Escape) -> Condition:
        like, sign = (node.this, node.expression) if isinstance(node, exp.Escape) else (node, None)
        if not isinstance(like, exp.Like):
            raise self._fault(node, "ESCAPE belongs to LIKE", "LIKE before ESCAPE")
        column = self._column(like.this)
        if column.type != "string":
            raise self._fault(like.this, f"LIKE does not go with {column.type}", "a column of strings")
        pattern = self._literal(like.expression)
        if pattern.kind is not Kind.STRING:
            raise self._fault(
                like.expression, "this is no pattern", "a string; % is any text, _ any character"
            )
        if len(pattern.text) > _PATTERN_CHARACTERS_MAX:
            expected = f"at most {_PATTERN_CHARACTERS_MAX:,} characters"
            raise self._fault(like.expression, "the pattern is too long", expected)
        escape = None if sign is None else self._literal(sign).text
        if escape is not None and len(escape) != 1:
            raise self._fault(node, "this cannot escape", "one character after ESCAPE")
        found = Like(column=column, pattern=self._pattern(like.expression, pattern.text, escape))
        return Not(operand=found) if like.args.get("negate") else found

    def _pattern(self, node: exp.Expr, pattern: str, escape: str | None) -> str:
        """The pattern with a backslash as what escapes. Without ESCAPE nothing does, as the standard has it."""
        parts = []
        characters = iter(pattern)
        for character in characters:
            if character == escape:
                escaped = next(characters, "")
                if escaped not in {"%", "_", escape}:
                    raise self._fault(node, f"{escape!r} escapes nothing here", f"%, _ or {escape} behind it")
                parts.append("\\" + escaped)
            else:
                parts.append("\\\\" if character == "\\" else character)
        return "".join(parts)

    def _literal(self, node: exp.Expr) -> Literal:
        match _bare(node):
            case exp.Null():
                return Literal(kind=Kind.NULL, text="NULL")
            case exp.Boolean(this=truth):
                return Literal(kind=Kind.BOOLEAN, text="TRUE" if truth else "FALSE")
            case exp.Literal(this=text, is_string=is_string):
                return Literal(kind=Kind.STRING if is_string else Kind.NUMBER, text=text)
            case exp.Cast(this=exp.Literal(this=text), to=to):
                return Literal(kind=_TYPED_LITERALS[to.this], text=text)
            case exp.Neg(this=operand):
                positive = self._literal(operand)
                if positive.kind is Kind.NUMBER and not positive.text.startswith("-"):
                    return Literal(kind=Kind.NUMBER, text=f"-{positive.text}")
        raise self._fault(
            node, "this is no literal", "a number, a 'string', TRUE, FALSE, NULL, DATE '…' or TIMESTAMP '…'"
        )

    def _column(self, node: exp.Expr) -> Column:
        node = _bare(node)
        if not _names_column(node):
            raise self._fault(node, "this is no column", "the name of a column")
        names = _names(node)
        found = self._named(names[0], self.types)
        for name in names[1:]:
            if not isinstance(found, Struct):
                raise self._fault(
                    name, f"a column of type {found} has no members", "a column, or a member of a struct"
                )
            found = self._named(name, dict(found.members))
        return Column(path=tuple(name.name for name in names), type=str(found))

    def _named(self, name: exp.Identifier, known: Mapping[str, DataType]) -> DataType:
        if name.name in known:
            return known[name.name]
        alike = [other for other in known if other.casefold() == name.name.casefold()]
        near = alike or get_close_matches(name.name, known, n=_NAMES_SHOWN)
        listed = [shown(other) for other in near or list(known)[:_NAMES_SHOWN]]
        if not near and len(known) > _NAMES_SHOWN:
            listed.append("…")
        raise self._fault(name, f"there is no column {shown(name.name)}", ", ".join(listed))

    def _fault(self, node: exp.Expr, reason: str, expected: str) -> InvalidFilter:
        return invalid(self.text, place(node), reason, expected)


def _chain(node: exp.Expr) -> list[exp.Expr]:
    """The operands of `a AND b AND c`, which the tree holds as pairs, nested as deep as the chain is long."""
    operands = []
    pending = [node]
    while pending:
        part = pending.pop()
        if type(part) is type(node):
            pending += [part.expression, part.this]
        else:
            operands.append(part)
    return operands


def _bare(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _names_column(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Dot)


def _names(node: exp.Expr) -> list[exp.Identifier]:
    """The names that a column's path is written with."""
    last = []
    while isinstance(node, exp.Dot):
        last.append(node.expression)
        node = node.this
    first = [node.args.get(part) for part in ("catalog", "db", "table", "this")]
    return [*filter(None, first), *reversed(last)]
