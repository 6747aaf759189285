"""Binds one SELECT of a view: its columns and its SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from app.kernel.codecs.faults import shown
from app.kernel.format.schema.schema import FIELD_NAME_CHARACTERS_MAX, FIELDS_MAX, RESERVED_PREFIX
from app.kernel.sql.queries.bound import BoundQuery, BoundSelect, Environment, From
from app.kernel.sql.queries.clause import Clause, Subquery
from app.kernel.sql.queries.coercion import Untyped, has_map, is_flat
from app.kernel.sql.queries.cross_joins import Joins
from app.kernel.sql.queries.expressions import Binder
from app.kernel.sql.queries.functions.functions import FUNCTIONS, Role
from app.kernel.sql.queries.relation_types import quoted, spark_type
from app.kernel.sql.queries.scope import Scope, ScopeColumn
from app.kernel.sql.queries.values import Binding, Value
from app.kernel.sql.syntax import (
    Call,
    Expression,
    Item,
    Join,
    Name,
    Node,
    Number,
    Query,
    Select,
    SetOperation,
    Star,
    Table,
)

_KEPT: Final = quoted(f"{RESERVED_PREFIX}kept")


class SelectBinder:
    """Binds a SELECT, and the queries inside of its expressions. Raises InvalidView throughout.

    `environment`: the queries of WITH that these can name. `outer`: the scope of the query around the SELECT, if it can
    name its columns. `query` binds a query inside of an expression, which may be given such a scope.
    """

    def __init__(
        self,
        node: Select,
        environment: Environment,
        outer: Scope | None,
        *,
        binding: Binding,
        query: Callable[[Query, Environment, Scope | None], BoundQuery],
        allow_cross_joins: bool,
    ) -> None:
        self.node = node
        self.binding = binding
        self._environment = environment
        self._outer = outer
        self._query = query
        self._allow_cross_joins = allow_cross_joins
        self._subquery_reads = 0

    def select(self, source: From, *, needs_names: bool) -> BoundSelect:
        """The SELECT over its source; if not `needs_names`, its columns need no names."""
        where = self._where(source.scope)
        self._check_joins(source.joins.where(self.node.where, source.scope))
        groups = self._groups(source.scope)
        clause = Clause(
            "SELECT",
            source.scope,
            self._subquery,
            groups=None if groups is None else frozenset(group.sql for group in groups),
        )
        items = self._items(clause)
        having, qualify = self._filters(replace(clause, aliases=_aliases(items)))
        values = tuple(value for _, value in items)
        if groups is not None:
            self._check_grouped([*values, *(each for each in (having, qualify) if each is not None)])
        columns = self._columns(items, needs_names=needs_names)
        sql = _sql(
            columns, values, _tail(source, where, groups, having), qualify, distinct=self.node.distinct
        )
        reads = self.binding.checked_reads(self.node.at, source.reads + self._subquery_reads)
        single_row = groups == () and having is None and qualify is None
        bound = BoundQuery(sql, columns, reads, single_row=single_row)
        return BoundSelect(bound, clause, source, values, where, groups)

    def _subquery(self, node: Query, outer: Scope | None) -> Subquery:
        """A query inside of an expression. `outer`: the scope of this SELECT, if the query can name its columns."""
        before = self.binding.outer_columns
        plain = isinstance(node, Select) and not node.common
        bound = self._query(node, self._environment, outer if plain else None)
        if self.binding.outer_columns > before:
            assert isinstance(node, Select)
            windows = any(call.over is not None for call in _calls(node.items))
            if (
                node.distinct
                or node.group
                or node.having
                or node.qualify
                or windows
                or _aggregates(node.items)
            ):
                reason = "a query that names columns of the one around it neither groups nor counts"
                raise self.binding.at(node.at, reason, "a JOIN with a query that does")
        values = tuple(
            Value(
                at=node.at,
                sql=column.sql,
                type=column.type,
                nullable=column.nullable,
                origins=column.origins,
            )
            for column in bound.columns
        )
        self._subquery_reads += bound.reads
        return Subquery(bound.sql, values, bound.single_row)

    def _check_joins(self, joins: Joins) -> None:
        node = None if self._allow_cross_joins else joins.cross_join()
        if node is not None:
            name = None if isinstance(node.right, Join) else node.right.alias
            name = node.right.name if name is None and isinstance(node.right, Table) else name
            join = f"the {node.side.value} JOIN" + (f" with {shown(name)}" if name is not None else "")
            reason = f"{join} compares every row of one side with every row of the other"
            expectation = (
                "ON with an equality of a column of each side, or allow_cross_join: true in the view"
            )
            raise self.binding.at(node.at, reason, expectation)

    def _where(self, scope: Scope) -> Value | None:
        if self.node.where is None:
            return None
        clause = Clause(
            "WHERE",
            scope,
            self._subquery,
            outer=self._outer,
            aggregates="there are no aggregates in WHERE",
            windows="there are no windows in WHERE",
            queries="a query inside of a query in WHERE names too much" if self._outer is not None else None,
        )
        return Binder(clause, self.binding).condition(self.node.where)

    def _groups(self, scope: Scope) -> tuple[Value, ...] | None:
        """The expressions that rows are grouped by: empty if all rows are one group, None without grouping."""
        node = self.node
        if not node.group:
            return () if node.having is not None or _aggregates((node.items, node.qualify)) else None
        clause = Clause(
            "GROUP BY",
            scope,
            aggregates="there are no aggregates in GROUP BY",
            windows="there are no windows in GROUP BY",
            queries="there are no queries in GROUP BY",
        )
        expressions = [self._grouped_by(each, scope) for each in node.group]
        groups = []
        for each in {id(each): each for each in expressions}.values():
            value = Binder(clause, self.binding).value(each)
            if not is_flat(value.type):
                reason = f"rows cannot be grouped by values of type {value.named()}"
                raise self.binding.at(each.at, reason, "another column")
            groups.append(value)
        return tuple(groups)

    def _grouped_by(self, group: Expression, scope: Scope) -> Expression:
        """The group's expression: the column of the SELECT list with this number or alias, or the expression itself."""
        if isinstance(group, Number):
            number = int(group.text) if group.text.isdecimal() and len(group.text) < 5 else 0
            if not 1 <= number <= len(self.node.items) or any(
                isinstance(item, Star) for item in self.node.items
            ):
                raise self.binding.at(
                    group.at, "there is no such column in the SELECT list", "its number, from 1"
                )
            item = self.node.items[number - 1]
            assert isinstance(item, Item)
            return item.value
        if isinstance(group, Name) and len(group.parts) == 1 and not scope.find(None, group.parts[0]):
            alias = group.parts[0].casefold()
            for item in self.node.items:
                if isinstance(item, Item) and item.alias is not None and item.alias.casefold() == alias:
                    return item.value
        return group

    def _items(self, clause: Clause) -> list[tuple[Item | Star, Value]]:
        """The values of the SELECT list, each with the item that it comes from."""
        binder = Binder(clause, self.binding)
        items: list[tuple[Item | Star, Value]] = []
        for item in self.node.items:
            if isinstance(item, Item):
                items.append((item, binder.value(item.value)))
                continue
            if item.table is not None and not clause.scope.has_table(item.table):
                raise self.binding.at(
                    item.at, f"there is no table {shown(item.table)} in FROM", "a table in FROM"
                )
            columns = clause.scope.starred(item.table)
            if not columns:
                raise self.binding.at(item.at, "* has no columns here", "columns, or FROM")
            for column in columns:
                value = column.value(item.at, self.binding)
                is_group = clause.groups is not None and value.sql in clause.groups
                items.append((item, replace(value, columns=frozenset()) if is_group else value))
        self.binding.add_columns(self.node.at, len(items))
        if len(items) > FIELDS_MAX:
            raise self.binding.at(self.node.at, "there are too many columns", f"at most {FIELDS_MAX:,}")
        return items

    def _filters(self, clause: Clause) -> tuple[Value | None, Value | None]:
        node = self.node
        having = qualify = None
        if node.having is not None:
            no_windows = replace(clause, name="HAVING", windows="there are no windows in HAVING")
            having = Binder(no_windows, self.binding).condition(node.having)
            if having.windows:
                raise self.binding.at(node.having.at, "there are no windows in HAVING", "QUALIFY")
        if node.qualify is not None:
            no_queries = replace(clause, name="QUALIFY", queries="there are no queries in QUALIFY")
            qualify = Binder(no_queries, self.binding).condition(node.qualify)
        return having, qualify

    def _check_grouped(self, values: Sequence[Value]) -> None:
        for value in values:
            for name, at in sorted(value.columns, key=lambda column: column[1]):
                expectation = "it in GROUP BY, or an aggregate around it, such as MAX(…)"
                raise self.binding.at(at, f"{shown(name)} has several values in a group of rows", expectation)

    def _columns(
        self, items: Sequence[tuple[Item | Star, Value]], *, needs_names: bool
    ) -> tuple[ScopeColumn, ...]:
        names = self._names(items) if needs_names else [f"c{number}" for number in range(1, len(items) + 1)]
        columns = tuple(
            ScopeColumn(name, quoted(name), value.type, value.nullable, origins=value.origins)
            for name, (_, value) in zip(names, items, strict=True)
        )
        if self.node.distinct and any(has_map(column.type) for column in columns):
            raise self.binding.at(self.node.at, "maps cannot be compared", "no DISTINCT, or no maps")
        return columns

    def _names(self, items: Sequence[tuple[Item | Star, Value]]) -> list[str]:
        names = []
        for item, value in items:
            name = item.alias if isinstance(item, Item) and item.alias is not None else value.name
            if name is None:
                raise self.binding.at(item.at, "this column has no name", "AS name after it")
            names.append(name)
        check_names(names, [item.at for item, _ in items], self.binding)
        return names


def check_names(names: Sequence[str], places: Sequence[int], binding: Binding) -> None:
    """Raises InvalidView for names that columns cannot have, or that differ by less than case."""
    folded_names: set[str] = set()
    for name, at in zip(names, places, strict=True):
        if not 1 <= len(name) <= FIELD_NAME_CHARACTERS_MAX or not name.isprintable() or "${" in name:
            expectation = f"1–{FIELD_NAME_CHARACTERS_MAX} printable characters, no `${{`"
            raise binding.at(at, "this cannot be the name of a column", expectation)
        if name.startswith(RESERVED_PREFIX):
            raise binding.at(at, f"names starting with {RESERVED_PREFIX!r} are reserved", "another name")
        if name.casefold() in folded_names:
            expectation = "AS another name (names must differ by more than case)"
            raise binding.at(at, f"two columns are called {shown(name)}", expectation)
        folded_names.add(name.casefold())


def _aliases(items: Sequence[tuple[Item | Star, Value]]) -> dict[str, Value]:
    """The columns of the SELECT list by alias, without regard to case."""
    return {
        item.alias.casefold(): value
        for item, value in items
        if isinstance(item, Item) and item.alias is not None
    }


def _tail(source: From, where: Value | None, groups: Sequence[Value] | None, having: Value | None) -> str:
    """The SQL behind the SELECT list."""
    tail = f" FROM {source.sql}" if source.sql else ""
    tail += f" WHERE {where.sql}" if where is not None else ""
    tail += f" GROUP BY {', '.join(_group_key(group) for group in groups)}" if groups else ""
    return tail + (f" HAVING {having.sql}" if having is not None else "")


def _sql(
    columns: Sequence[ScopeColumn],
    values: Sequence[Value],
    tail: str,
    qualify: Value | None,
    *,
    distinct: bool,
) -> str:
    """The SQL of a SELECT. The condition of QUALIFY is a column of a query inside of it."""
    word = "SELECT DISTINCT" if distinct else "SELECT"
    select_list = ", ".join(
        f"{value.sql} AS {column.sql}" for value, column in zip(values, columns, strict=True)
    )
    if qualify is None:
        return f"{word} {select_list}{tail}"
    names = ", ".join(column.sql for column in columns)
    inner = f"SELECT {select_list}, {qualify.sql} AS {_KEPT}{tail}"
    return f"{word} {names} FROM ({inner}) AS q WHERE {_KEPT}"


def _group_key(value: Value) -> str:
    # A mere number would be the number of a column.
    return (
        f"CAST({value.sql} AS {spark_type(value.type)})"
        if isinstance(value.literal, int) and not isinstance(value.type, Untyped)
        else value.sql
    )


def _aggregates(part: Any) -> bool:
    """Whether a part of a SELECT has an aggregate, except in subqueries or as a window function."""
    functions = (FUNCTIONS.get(call.name) for call in _calls(part) if call.over is None)
    return any(function is not None and function.role is Role.AGGREGATE for function in functions)


def _calls(part: Any) -> Iterator[Call]:
    """The calls in a part of a SELECT, except those in subqueries."""
    if isinstance(part, Call):
        yield part
    if isinstance(part, Select | SetOperation):
        return
    parts = part if isinstance(part, tuple) else ()
    if isinstance(part, Node):
        parts = tuple(getattr(part, each.name) for each in fields(part))
    for each in parts:
        yield from _calls(each)
