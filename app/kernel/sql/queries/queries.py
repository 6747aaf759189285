"""Binds queries of a view: their columns and their SQL."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from app.kernel.codecs.faults import shown
from app.kernel.format.schema.schema import FIELD_NAME_CHARACTERS_MAX, FIELDS_MAX, RESERVED_PREFIX
from app.kernel.format.schema.types import List, Map, Struct
from app.kernel.sql.queries.bound import BoundQuery, BoundSelect, Environment, From, InputTable, Named
from app.kernel.sql.queries.clause import Clause, Subquery
from app.kernel.sql.queries.coercion import SqlType, Untyped, common_type, is_flat
from app.kernel.sql.queries.cross_joins import Joins
from app.kernel.sql.queries.expressions import Binder
from app.kernel.sql.queries.functions.functions import FUNCTIONS, Role
from app.kernel.sql.queries.relation_types import quoted, spark_type
from app.kernel.sql.queries.scope import Scope, ScopeColumn
from app.kernel.sql.queries.sources import SourceBinder
from app.kernel.sql.queries.values import Binding, Value, converted
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

# The engine expands a query of WITH at each place that names it.
READS_MAX: Final = 64
_KEPT: Final = quoted(f"{RESERVED_PREFIX}kept")


class QueryBinder:
    """Binds queries. Raises InvalidView throughout.

    Of the current SELECT: `_environment`, the queries that its subqueries can name; `_subquery_reads`, the number of
    reads by these.
    """

    def __init__(
        self, binding: Binding, inputs: Mapping[str, InputTable], *, allow_cross_joins: bool
    ) -> None:
        self.binding = binding
        self._allow_cross_joins = allow_cross_joins
        self._sources = SourceBinder(binding, inputs, self.query, self.subquery)
        self._environment = Environment()
        self._subquery_reads = 0

    def query(self, node: Query, environment: Environment, names: Sequence[str] = ()) -> BoundQuery:
        """A query with these names for its columns, or their own if there are none."""
        bound = self._query(node, environment, None, needs_names=not names)
        return self._renamed(node.at, bound, names) if names else bound

    def subquery(self, node: Query, outer: Scope | None) -> Subquery:
        """A query inside of an expression. `outer`: the scope of the query around it."""
        before = self.binding.outer_columns
        plain = isinstance(node, Select) and not node.common
        bound = self._query(node, self._environment, outer if plain else None, needs_names=False)
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
            Value(at=node.at, sql=column.sql, type=column.type, nullable=column.nullable)
            for column in bound.columns
        )
        self._subquery_reads += bound.reads
        return Subquery(bound.sql, values, bound.single_row)

    def _query(
        self, node: Query, environment: Environment, outer: Scope | None, *, needs_names: bool
    ) -> BoundQuery:
        around, parts = self._environment, []
        for common in node.common:
            common_query = self.query(common.query, environment, common.columns)
            name = f"with{self._sources.alias()}"
            environment = environment.having(common.name, Named(name, common_query))
            parts.append(f"{name} AS ({common_query.sql})")
        self._environment = environment
        if isinstance(node, Select):
            bound = self.select(node, environment, outer, needs_names=needs_names).bound
        else:
            bound = self._united(node, environment, needs_names=needs_names)
        self._environment = around
        return replace(bound, sql=f"WITH {', '.join(parts)} {bound.sql}") if parts else bound

    def _united(self, node: SetOperation, environment: Environment, *, needs_names: bool) -> BoundQuery:
        left_query = self._query(node.left, environment, None, needs_names=needs_names)
        right_query = self._query(node.right, environment, None, needs_names=False)
        if len(left_query.columns) != len(right_query.columns):
            reason = f"one side has {len(left_query.columns)} columns, the other {len(right_query.columns)}"
            raise self.binding.at(node.right.at, reason, "the same number on both sides")
        types = []
        for one, other in zip(left_query.columns, right_query.columns, strict=True):
            type_ = common_type((one.type, other.type))
            if type_ is None:
                reason = f"{shown(one.name)} is {_shown(one.type)} on one side and {_shown(other.type)} on the other"
                raise self.binding.at(node.right.at, reason, "columns of one type: CAST(… AS type)")
            if not node.all and _has_map(type_):
                raise self.binding.at(node.at, "maps cannot be compared", f"{node.operator} ALL, or no maps")
            types.append(type_)
        columns = tuple(
            replace(one, type=type_, nullable=_nullable(node, one, other))
            for one, other, type_ in zip(left_query.columns, right_query.columns, types, strict=True)
        )
        word = f"{node.operator} ALL" if node.all else node.operator
        sql = f"{_as_types(left_query, types)} {word} {_as_types(right_query, types)}"
        return BoundQuery(sql, columns, self._checked_reads(node.at, left_query.reads + right_query.reads))

    def _checked_reads(self, at: int, reads: int) -> int:
        if reads > READS_MAX:
            expectation = f"at most {READS_MAX} times; a query of WITH counts wherever it is named"
            raise self.binding.at(at, f"datasets are read {reads} times", expectation)
        return reads

    def select(
        self, node: Select, environment: Environment, outer: Scope | None = None, *, needs_names: bool = True
    ) -> BoundSelect:
        """A SELECT; if not `needs_names`, its columns need no names."""
        around, self._subquery_reads = self._subquery_reads, 0
        source = (
            From("", Scope(), 0) if node.source is None else self._sources.source(node.source, environment)
        )
        where = self._where(node, source.scope, outer)
        self._check_joins(source.joins.where(node.where, source.scope))
        groups = self._groups(node, source.scope)
        clause = Clause(
            "SELECT",
            source.scope,
            self.subquery,
            groups=None if groups is None else frozenset(group.sql for group in groups),
        )
        values = self._values(node, clause)
        aliases = {
            item.alias.casefold(): value
            for item, value in values
            if isinstance(item, Item) and item.alias is not None
        }
        having, qualify = self._filters(node, replace(clause, aliases=aliases))
        if groups is not None:
            self._check_grouped([value for _, value in values] + [each for each in (having, qualify) if each])
        names = self._names(values, needs_names=needs_names)
        columns = tuple(
            ScopeColumn(name, quoted(name), value.type, value.nullable)
            for name, (_, value) in zip(names, values, strict=True)
        )
        if node.distinct and any(_has_map(column.type) for column in columns):
            raise self.binding.at(node.at, "maps cannot be compared", "no DISTINCT, or no maps")
        select_list = [f"{value.sql} AS {name.sql}" for (_, value), name in zip(values, columns, strict=True)]
        tail = f" FROM {source.sql}" if source.sql else ""
        tail += f" WHERE {where.sql}" if where is not None else ""
        tail += f" GROUP BY {', '.join(_group_key(group) for group in groups)}" if groups else ""
        tail += f" HAVING {having.sql}" if having is not None else ""
        distinct = "DISTINCT " if node.distinct else ""
        if qualify is None:
            sql = f"SELECT {distinct}{', '.join(select_list)}{tail}"
        else:
            inner = f"SELECT {', '.join(select_list)}, {qualify.sql} AS {_KEPT}{tail}"
            sql = f"SELECT {distinct}{', '.join(column.sql for column in columns)} FROM ({inner}) AS q WHERE {_KEPT}"
        single = groups == () and having is None and qualify is None
        reads = self._checked_reads(node.at, source.reads + self._subquery_reads)
        self._subquery_reads = around
        return BoundSelect(
            BoundQuery(sql, columns, reads, single_row=single),
            clause,
            source,
            tuple(value for _, value in values),
            where,
            groups,
        )

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

    def _where(self, node: Select, scope: Scope, outer: Scope | None) -> Value | None:
        if node.where is None:
            return None
        clause = Clause(
            "WHERE",
            scope,
            self.subquery,
            outer=outer,
            aggregates="there are no aggregates in WHERE",
            windows="there are no windows in WHERE",
            queries="a query inside of a query in WHERE names too much" if outer is not None else None,
        )
        return Binder(clause, self.binding).condition(node.where)

    def _groups(self, node: Select, scope: Scope) -> tuple[Value, ...] | None:
        """The expressions that rows are grouped by: empty if all rows are one group, None without grouping."""
        if not node.group:
            return () if node.having is not None or _aggregates((node.items, node.qualify)) else None
        clause = Clause(
            "GROUP BY",
            scope,
            self.subquery,
            aggregates="there are no aggregates in GROUP BY",
            windows="there are no windows in GROUP BY",
            queries="there are no queries in GROUP BY",
        )
        expressions = [self._grouped_by(node, each, scope) for each in node.group]
        groups = []
        for each in {id(each): each for each in expressions}.values():
            value = Binder(clause, self.binding).value(each)
            if not is_flat(value.type):
                reason = f"rows cannot be grouped by values of type {value.named()}"
                raise self.binding.at(each.at, reason, "another column")
            groups.append(value)
        return tuple(groups)

    def _grouped_by(self, node: Select, group: Expression, scope: Scope) -> Expression:
        """The group's expression: the column of the SELECT list with this number or alias, or the expression itself."""
        if isinstance(group, Number):
            number = int(group.text) if group.text.isdecimal() and len(group.text) < 5 else 0
            if not 1 <= number <= len(node.items) or any(isinstance(item, Star) for item in node.items):
                raise self.binding.at(
                    group.at, "there is no such column in the SELECT list", "its number, from 1"
                )
            item = node.items[number - 1]
            assert isinstance(item, Item)
            return item.value
        if isinstance(group, Name) and len(group.parts) == 1 and not scope.find(None, group.parts[0]):
            alias = group.parts[0].casefold()
            for item in node.items:
                if isinstance(item, Item) and item.alias is not None and item.alias.casefold() == alias:
                    return item.value
        return group

    def _values(self, node: Select, clause: Clause) -> list[tuple[Item | Star, Value]]:
        binder = Binder(clause, self.binding)
        values: list[tuple[Item | Star, Value]] = []
        for item in node.items:
            if isinstance(item, Item):
                values.append((item, binder.value(item.value)))
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
                values.append((item, replace(value, columns=frozenset()) if is_group else value))
        self.binding.add_columns(node.at, len(values))
        if len(values) > FIELDS_MAX:
            raise self.binding.at(node.at, "there are too many columns", f"at most {FIELDS_MAX:,}")
        return values

    def _filters(self, node: Select, clause: Clause) -> tuple[Value | None, Value | None]:
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

    def _names(self, values: Sequence[tuple[Item | Star, Value]], *, needs_names: bool) -> list[str]:
        if not needs_names:
            return [f"c{number}" for number, _ in enumerate(values, start=1)]
        names = []
        for item, value in values:
            name = item.alias if isinstance(item, Item) and item.alias is not None else value.name
            if name is None:
                raise self.binding.at(item.at, "this column has no name", "AS name after it")
            names.append(name)
        self._check_names(names, [item.at for item, _ in values])
        return names

    def _renamed(self, at: int, bound: BoundQuery, names: Sequence[str]) -> BoundQuery:
        """A query with its columns renamed to those of its alias."""
        if len(names) != len(bound.columns):
            reason = f"{len(names)} names are listed for {len(bound.columns)} columns"
            raise self.binding.at(at, reason, f"{len(bound.columns)} names")
        self._check_names(names, [at] * len(names))
        columns = tuple(replace(column, name=name) for column, name in zip(bound.columns, names, strict=True))
        select_list = ", ".join(
            f"q.{quoted(old.name)} AS {quoted(new.name)}"
            for old, new in zip(bound.columns, columns, strict=True)
        )
        return replace(bound, sql=f"SELECT {select_list} FROM ({bound.sql}) AS q", columns=columns)

    def _check_names(self, names: Sequence[str], places: Sequence[int]) -> None:
        folded_names: set[str] = set()
        for name, at in zip(names, places, strict=True):
            if not 1 <= len(name) <= FIELD_NAME_CHARACTERS_MAX or not name.isprintable() or "${" in name:
                expectation = f"1–{FIELD_NAME_CHARACTERS_MAX} printable characters, no `${{`"
                raise self.binding.at(at, "this cannot be the name of a column", expectation)
            if name.startswith(RESERVED_PREFIX):
                raise self.binding.at(
                    at, f"names starting with {RESERVED_PREFIX!r} are reserved", "another name"
                )
            if name.casefold() in folded_names:
                expectation = "AS another name (names must differ by more than case)"
                raise self.binding.at(at, f"two columns are called {shown(name)}", expectation)
            folded_names.add(name.casefold())


def _nullable(node: SetOperation, one: ScopeColumn, other: ScopeColumn) -> bool:
    match node.operator:
        case "UNION":
            return one.nullable or other.nullable
        case "INTERSECT":
            return one.nullable and other.nullable
    return one.nullable


def _as_types(bound: BoundQuery, types: Sequence[SqlType]) -> str:
    """The query in parentheses, with its columns converted to these types."""
    if all(column.type == type_ for column, type_ in zip(bound.columns, types, strict=True)):
        return f"({bound.sql})"
    values = [Value(0, f"q.{quoted(column.name)}", column.type, column.nullable) for column in bound.columns]
    select_list = ", ".join(
        f"{converted(value, type_).sql} AS {quoted(column.name)}"
        for value, column, type_ in zip(values, bound.columns, types, strict=True)
    )
    return f"(SELECT {select_list} FROM ({bound.sql}) AS q)"


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


def _has_map(type_: SqlType) -> bool:
    match type_:
        case Map():
            return True
        case List(element):
            return _has_map(element)
        case Struct(members):
            return any(_has_map(member) for _, member in members)
    return False


def _shown(type_: SqlType) -> str:
    return type_.value if isinstance(type_, Untyped) else str(type_)
