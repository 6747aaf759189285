"""Finds joins that combine every row of one side with every row of the other.

The columns of the relations in a FROM form groups. An equality that every row of the result must satisfy, in ON, USING
or WHERE, joins the groups of its two sides. If several groups remain, a join of them compares all pairs of rows.

Each side of the equality needs a column. The rule reads the SQL and not the data: an equality that holds for all pairs
counts too, and only the time limit of a computation ends such a join.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, Final, TypeAlias

from app.kernel.sql.queries.scope import Scope, ScopeColumn
from app.kernel.sql.syntax import Binary, Connective, Expression, Join, Name, Node, Select, SetOperation

_EQUALITIES: Final = frozenset({"=", "<=>"})
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

    def using(self, left_column: ScopeColumn, right_column: ScopeColumn, merged_sql: str) -> Joins:
        """The joins with a column of USING, which is read as `merged_sql` from then on."""
        one, other, both = (
            frozenset({left_column.sql}),
            frozenset({right_column.sql}),
            frozenset({merged_sql}),
        )
        equalities = (*self.equalities, (one, both), (one, other))
        return replace(self, groups=(*self.groups, both), equalities=equalities)

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
            for one_side, other_side in waiting:
                ones = {number_of.get(column) for column in one_side}
                others = {number_of.get(column) for column in other_side}
                if len(ones) > 1 or len(others) > 1:
                    rest.append((one_side, other_side))
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
            one, other = _columns_in(condition.left, scope), _columns_in(condition.right, scope)
            if one and other:
                yield one, other


def _columns_in(part: Any, scope: Scope) -> _Columns:
    """The SQL of the columns that an expression needs, except in subqueries."""
    match part:
        case Name(parts=[table, column, *_]) if scope.has_table(table):
            return _Columns(each.sql for each in scope.find(table, column))
        case Name(parts=[column, *_]):
            return _Columns(each.sql for each in scope.find(None, column))
        case Select() | SetOperation():
            return _Columns()
        case tuple():
            return _Columns().union(*(_columns_in(each, scope) for each in part))
        case Node():
            return _Columns().union(*(_columns_in(getattr(part, each.name), scope) for each in fields(part)))
        case _:
            return _Columns()
