"""Finds joins that combine every row of one side with every row of the other.

The columns of the relations in a FROM form groups. An equality that every row of the result must satisfy, in ON, USING
or WHERE, joins the groups of its two sides. If several groups remain, a join of them compares all pairs of rows.

At least one side of the equality must be as different as a column is: `a.x % 1 = b.x % 1` holds for all pairs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

from app.sql.queries.coercion import BOOLEAN
from app.sql.queries.scope import Scope
from app.sql.syntax import (
    Binary,
    Call,
    Cast,
    Connective,
    Element,
    Expression,
    Join,
    Member,
    Name,
    Node,
    Select,
    SetOperation,
)

_EQUALITIES: Final = frozenset({"=", "<=>"})
# Functions that have about as many values as their first argument, and as any of their arguments.
_AS_FIRST: Final = frozenset(
    "lower upper initcap trim ltrim rtrim reverse replace translate hex unhex base64 unbase64 md5 sha1 sha2 to_date "
    "trunc coalesce ifnull nvl".split()
)
_AS_ANY: Final = frozenset({"concat", "concat_ws", "xxhash64", "date_trunc"})
_Columns: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Joins:
    """The joins of a FROM.

    `groups`: the columns of each relation by their SQL. `equalities`: the columns of both sides of each equality.
    `nodes`: each join, with the columns of its right side. `single_row`: columns of relations with one row, which may
    be joined with anything.
    """

    groups: tuple[_Columns, ...] = ()
    equalities: tuple[tuple[_Columns, _Columns], ...] = ()
    nodes: tuple[tuple[Join, _Columns], ...] = ()
    single_row: _Columns = frozenset()

    def beside(self, other: Joins, node: Join) -> Joins:
        """Both sides of a join, before its condition."""
        return Joins(
            groups=self.groups + other.groups,
            equalities=self.equalities + other.equalities,
            nodes=(*self.nodes, *other.nodes, (node, _Columns().union(*other.groups))),
            single_row=self.single_row | other.single_row,
        )

    def where(self, condition: Expression | None, scope: Scope) -> Joins:
        """The joins with a condition on columns of the scope."""
        if condition is None:
            return self
        return replace(self, equalities=(*self.equalities, *_equalities(condition, scope)))

    def using(self, left: str, right: str, merged: str) -> Joins:
        """The joins with a column of USING, which is read as `merged` from then on."""
        one = frozenset({left})
        equalities = (*self.equalities, (one, frozenset({right})), (one, frozenset({merged})))
        return replace(self, groups=(*self.groups, frozenset({merged})), equalities=equalities)

    def cross_join(self) -> Join | None:
        """The first join that compares all pairs of rows; None if there is none."""
        groups = [group for group in self._joined_groups() if not group <= self.single_row]
        if len(groups) < 2:
            return None
        for node, right in self.nodes:
            if any(group <= right for group in groups):
                return node
        return self.nodes[-1][0]

    def _joined_groups(self) -> list[_Columns]:
        """The groups that no equality joins."""
        number_of: dict[str, int] = {}
        groups: dict[int, _Columns] = {}
        for number, group in enumerate(self.groups):
            new = frozenset(column for column in group if column not in number_of)
            if new:
                groups[number] = new
                number_of.update(dict.fromkeys(new, number))
        # An equality with several columns on a side counts once these are in one group.
        waiting, count = list(self.equalities), 0
        while len(waiting) != count:
            count, rest = len(waiting), []
            for left, right in waiting:
                ones = {number_of.get(column) for column in left}
                others = {number_of.get(column) for column in right}
                if len(ones) > 1 or len(others) > 1:
                    rest.append((left, right))
                    continue
                [one], [other] = ones, others
                if one is not None and other is not None and one != other:
                    number_of.update(dict.fromkeys(groups[other], one))
                    groups[one] |= groups.pop(other)
            waiting = rest
        return list(groups.values())


NO_JOINS: Final = Joins()


def _equalities(condition: Expression, scope: Scope) -> Iterator[tuple[_Columns, _Columns]]:
    """The equalities that hold wherever the condition is true, between columns of the scope."""
    match condition:
        case Connective(operator="AND"):
            for operand in condition.operands:
                yield from _equalities(operand, scope)
        case Binary() if condition.operator in _EQUALITIES:
            left, right = _columns(condition.left, scope), _columns(condition.right, scope)
            if left and right and (_is_distinct(condition.left) or _is_distinct(condition.right)):
                yield left, right


def _is_distinct(part: Expression) -> bool:
    """Whether an expression has about as many values as a column."""
    match part:
        case Name():
            return True
        case Cast():
            return part.type != BOOLEAN and _is_distinct(part.operand)
        case Member() | Element():
            return _is_distinct(part.operand)
        case Binary(operator="||"):
            return _is_distinct(part.left) or _is_distinct(part.right)
        case Call() if part.name in _AS_FIRST:
            return any(map(_is_distinct, part.arguments[:1]))
        case Call() if part.name in _AS_ANY:
            return any(map(_is_distinct, part.arguments))
        case _:
            return False


def _columns(part: Any, scope: Scope) -> _Columns:
    """The columns of the scope that an expression needs, except in subqueries."""
    if isinstance(part, Name):
        return frozenset(_sql_of(part, scope))
    if isinstance(part, Select | SetOperation):
        return frozenset()
    parts = part if isinstance(part, tuple) else ()
    if isinstance(part, Node):
        parts = tuple(getattr(part, each.name) for each in fields(part))
    return frozenset().union(*(_columns(each, scope) for each in parts))


def _sql_of(name: Name, scope: Scope) -> Iterator[str]:
    if len(name.parts) > 1 and scope.has_table(name.parts[0]):
        yield from (column.sql for column in scope.find(name.parts[0], name.parts[1]))
    else:
        yield from (column.sql for column in scope.find(None, name.parts[0]))
