"""Binds the syntax tree of a condition to one schema. Syntax that is not listed here is not part of conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.kernel.codecs.faults import shown
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import DataType, Struct
from app.kernel.format.similar_names import similar_names
from app.kernel.sql import syntax
from app.kernel.sql.conditions.language import CONDITIONS
from app.kernel.sql.conditions.literals import Kind, Literal, Unfit, compared, one_of
from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Like,
    Not,
    Operator,
    Or,
)
from app.kernel.sql.names import listed, name_for_string, no_such

_OPERATORS: Final = {operator.value: operator for operator in Operator} | {"<>": Operator.EQUAL}
_REVERSED: Final = {
    Operator.EQUAL: Operator.EQUAL,
    Operator.LESS: Operator.GREATER,
    Operator.LESS_OR_EQUAL: Operator.GREATER_OR_EQUAL,
    Operator.GREATER: Operator.LESS,
    Operator.GREATER_OR_EQUAL: Operator.LESS_OR_EQUAL,
}
_TYPED: Final = {"DATE": Kind.DATE, "TIMESTAMP": Kind.TIMESTAMP, "X": Kind.BINARY}
_LITERALS: Final = "a number, a 'string', TRUE, FALSE, NULL, DATE '…' or TIMESTAMP '…'"


class ConditionBinder:
    """Binds conditions to the columns of a schema. Raises InvalidFilter throughout."""

    def __init__(self, text: str, schema: Schema) -> None:
        self.text = text
        self.types: dict[str, DataType] = {field.name: field.data_type() for field in schema.fields}

    def condition(self, node: syntax.Expression) -> Condition:
        match node:
            case syntax.Connective(operator="AND"):
                return And(operands=tuple(map(self.condition, node.operands)))
            case syntax.Connective():
                return Or(operands=tuple(map(self.condition, node.operands)))
            case syntax.Unary(operator="NOT"):
                return Not(operand=self.condition(node.operand))
            case syntax.Truth():
                return Constant(value=node.value)
            case syntax.Null():
                return Constant(value=None)
            case syntax.Name():
                return self._flag(node)
        return self._predicate(node)

    def _predicate(self, node: syntax.Expression) -> Condition:
        match node:
            case syntax.NullTest():
                return _negated(IsNull(column=self._column(node.operand)), node.negated)
            case syntax.InList():
                return _negated(self._one_of(node), node.negated)
            case syntax.Between():
                return _negated(self._between(node), node.negated)
            case syntax.LikePredicate():
                return _negated(self._like(node), node.negated)
            case syntax.Binary() if node.operator in _OPERATORS:
                return _negated(self._comparison(node), node.operator == "<>")
            case syntax.Binary() | syntax.Unary():
                raise self._fault(node.at, f"arithmetic is not part of {CONDITIONS.name}", CONDITIONS.summary)
        raise self._fault(node.at, "this is not a condition", "a comparison, or a boolean column")

    def _flag(self, node: syntax.Name) -> Condition:
        column = self._column(node)
        if column.type != "boolean":
            reason = f"a column of type {column.type} is not a condition"
            raise self._fault(node.at, reason, "a comparison with it")
        return Comparison(column=column, operator=Operator.EQUAL, value=True)

    def _comparison(self, node: syntax.Binary) -> Condition:
        operator = _OPERATORS[node.operator]
        one, other = node.left, node.right
        if isinstance(one, syntax.Name) and isinstance(other, syntax.Name):
            raise self._two_names(one, other)
        if isinstance(one, syntax.Name):
            return self._compared(self._column(one), operator, other)
        if isinstance(other, syntax.Name):
            return self._compared(self._column(other), _REVERSED[operator], one)
        reason = "this does not compare a column with a literal"
        raise self._fault(node.at, reason, "one column and one literal")

    def _two_names(self, one: syntax.Name, other: syntax.Name) -> HeadwaterError:
        """The error for a comparison of two names. An unknown name is probably a string in the wrong quotes."""
        for name in (other, one):
            if name.parts[0] not in self.types:
                return self._string_expected(name)
        return self._fault(other.at, "two columns cannot be compared", "one column and one literal")

    def _string_expected(self, name: syntax.Name) -> HeadwaterError:
        reason, literal = name_for_string(self.text, name.at, ".".join(name.parts))
        return self._fault(name.at, reason, f"a literal such as {literal}")

    def _compared(self, column: Column, operator: Operator, value: syntax.Expression) -> Condition:
        literal = self._literal(value)
        try:
            return compared(column, operator, literal)
        except Unfit as unfit:
            reason = f"this cannot be compared with {shown('.'.join(column.path))}"
            raise self._fault(value.at, reason, str(unfit)) from None

    def _one_of(self, node: syntax.InList) -> Condition:
        column = self._column(node.operand)
        return one_of(column, [self._compared(column, Operator.EQUAL, value) for value in node.candidates])

    def _between(self, node: syntax.Between) -> Condition:
        column = self._column(node.operand)
        low = self._compared(column, Operator.GREATER_OR_EQUAL, node.low)
        high = self._compared(column, Operator.LESS_OR_EQUAL, node.high)
        return And(operands=(low, high))

    def _like(self, node: syntax.LikePredicate) -> Condition:
        column = self._column(node.operand)
        if column.type != "string":
            raise self._fault(node.operand.at, f"LIKE does not support {column.type}", "a column of strings")
        return Like(column=column, pattern=node.pattern.value)

    def _literal(self, node: syntax.Expression) -> Literal:
        match node:
            case syntax.Null():
                return Literal(kind=Kind.NULL, text="NULL")
            case syntax.Truth():
                return Literal(kind=Kind.BOOLEAN, text="TRUE" if node.value else "FALSE")
            case syntax.Text():
                return Literal(kind=Kind.STRING, text=node.value)
            case syntax.Number():
                return Literal(kind=Kind.NUMBER, text=node.text)
            case syntax.Unary(operator="-", operand=syntax.Number(text=text)):
                return Literal(kind=Kind.NUMBER, text=f"-{text}")
            case syntax.TypedText():
                return Literal(kind=_TYPED[node.kind], text=node.text)
            case syntax.Name():
                raise self._string_expected(node)
        raise self._fault(node.at, "this is not a literal", _LITERALS)

    def _column(self, node: syntax.Expression) -> Column:
        if not isinstance(node, syntax.Name):
            raise self._fault(node.at, "this is not a column", "the name of a column")
        data_type = self._named(node.parts[0], node.at, self.types)
        for name, at in zip(node.parts[1:], node.places[1:], strict=True):
            if not isinstance(data_type, Struct):
                expectation = "a column, or a member of a struct"
                raise self._fault(at, f"a column of type {data_type} has no members", expectation)
            data_type = self._named(name, at, dict(data_type.members))
        return Column(path=node.parts, type=str(data_type))

    def _named(self, name: str, at: int, types: Mapping[str, DataType]) -> DataType:
        if name in types:
            return types[name]
        similar = similar_names(name, types)
        raise self._fault(at, no_such("column", name, similar), listed(similar or types))

    def _fault(self, at: int, reason: str, expectation: str) -> HeadwaterError:
        return CONDITIONS.invalid(self.text, at, reason, expectation)


def _negated(condition: Condition, has_not: bool) -> Condition:
    return Not(operand=condition) if has_not else condition
