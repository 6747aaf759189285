"""Finds joins that combine every row of one side with every row of the other.

The columns of the relations in a FROM form groups. An equality that every row of the result must satisfy, in ON, USING
or WHERE, joins the groups of its two sides. If several groups remain, a join of them compares all pairs of rows.

At least one side of the equality must be as different as a column of a dataset is: `a.x % 1 = b.x % 1` holds for all
pairs. Columns of queries in FROM are as different as what they are computed from.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from app.kernel.sql.queries.joins.variety import columns_in, variety_of
from app.kernel.sql.queries.scope import Scope, ScopeColumn, Variety
from app.kernel.sql.syntax import Binary, Connective, Expression, Join

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

    def using(self, left: ScopeColumn, right: ScopeColumn, merged: str) -> Joins:
        """The joins with a column of USING, which is read as `merged` from then on."""
        one, other, both = frozenset({left.sql}), frozenset({right.sql}), frozenset({merged})
        equalities = [*self.equalities, (one, both)]
        varieties = left.variety, right.variety
        if Variety.MANY in varieties and Variety.ONE not in varieties:
            equalities.append((one, other))
        return replace(self, groups=(*self.groups, both), equalities=tuple(equalities))

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
            left, right = columns_in(condition.left, scope), columns_in(condition.right, scope)
            varieties = variety_of(condition.left, scope), variety_of(condition.right, scope)
            if left and right and Variety.MANY in varieties:
                yield left, right
