"""Binds the sources in FROM: datasets, queries, and joins of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count

from app.kernel.codecs.faults import shown
from app.kernel.sql.queries.bound import BoundQuery, Environment, From, InputTable
from app.kernel.sql.queries.clause import Clause
from app.kernel.sql.queries.coercion import common_type, is_flat
from app.kernel.sql.queries.cross_joins import Joins
from app.kernel.sql.queries.expressions import Binder
from app.kernel.sql.queries.relation_types import quoted, relation_type
from app.kernel.sql.queries.scope import Relation, Scope, ScopeColumn
from app.kernel.sql.queries.values import Binding, Value, converted
from app.kernel.sql.syntax import Derived, Join, Query, Side, Source, Table


class SourceBinder:
    """Binds the sources in FROM. Raises InvalidView throughout.

    `query` binds a query, with these names for its columns, or their own if there are none.
    """

    def __init__(
        self,
        binding: Binding,
        inputs: Mapping[str, InputTable],
        query: Callable[[Query, Environment, Sequence[str]], BoundQuery],
    ) -> None:
        self.binding = binding
        self._inputs = inputs
        self._numbers = {name: number for number, name in enumerate(inputs, start=1)}
        self._query = query
        self._aliases = count(1)

    def source(self, node: Source, environment: Environment) -> From:
        match node:
            case Table():
                return self._table(node, environment)
            case Derived():
                return self._derived(node, environment)
            case Join():
                return self._join(node, environment)

    def alias(self) -> str:
        """A unique name of a relation in the SQL."""
        return f"s{next(self._aliases)}"

    def _table(self, node: Table, environment: Environment) -> From:
        alias = self.alias()
        shown_as = node.alias or node.name
        common = environment.queries.get(node.name.casefold())
        if common is not None:
            relation = Relation(shown_as, _under(alias, common.bound.columns))
            joins = _one_group(relation, single_row=common.bound.single_row)
            return From(f"{common.name} AS {alias}", Scope((relation,)), common.bound.reads, joins)
        definition = self._inputs[node.name]
        columns = tuple(
            ScopeColumn(
                name=each.name,
                sql=f"{alias}.{quoted(each.name)}",
                type=relation_type(each.data_type()),
                nullable=each.nullable,
                origin=(node.name, each.name),
                origins=frozenset({(node.name, each.name)}),
            )
            for each in definition.schema.fields
        )
        relation = Relation(shown_as, columns, key=definition.record_key)
        sql = f"in{self._numbers[node.name]} AS {alias}"
        return From(sql, Scope((relation,)), 1, _one_group(relation))

    def _derived(self, node: Derived, environment: Environment) -> From:
        bound = self._query(node.query, environment, node.columns)
        alias = self.alias()
        relation = Relation(node.alias, _under(alias, bound.columns))
        joins = _one_group(relation, single_row=bound.single_row)
        return From(f"({bound.sql}) AS {alias}", Scope((relation,)), bound.reads, joins)

    def _join(self, node: Join, environment: Environment) -> From:
        left_source, right_source = self.source(node.left, environment), self.source(node.right, environment)
        self._check_aliases(node, left_source.scope, right_source.scope)
        both = _beside(left_source.scope, right_source.scope)
        merged_columns: tuple[ScopeColumn, ...] = ()
        joins = left_source.joins.beside(right_source.joins, node).where(node.on, both)
        condition = ""
        if node.using:
            pairs = [self._pair(node, name, left_source.scope, right_source.scope) for name in node.using]
            condition = " ON " + " AND ".join(f"({one.sql} = {other.sql})" for one, other in pairs)
            for value, other_value in pairs:
                column = _merged(node.side, value, other_value)
                [one], [other] = (
                    left_source.scope.find(None, column.name),
                    right_source.scope.find(None, column.name),
                )
                merged_columns += (column,)
                joins = joins.using(one, other, column.sql)
        elif node.on is not None:
            clause = Clause(
                "ON",
                both,
                aggregates="there are no aggregates in ON",
                windows="there are no windows in ON",
                queries="there are no queries in ON",
            )
            condition = f" ON {Binder(clause, self.binding).condition(node.on).sql}"
        right_sql = f"({right_source.sql})" if isinstance(node.right, Join) else right_source.sql
        sql = f"{left_source.sql} {node.side.value} JOIN {right_sql}{condition}"
        scope = _joined(node.side, left_source.scope, right_source.scope, merged_columns)
        return From(sql, scope, left_source.reads + right_source.reads, joins)

    def _check_aliases(self, node: Join, left_scope: Scope, right_scope: Scope) -> None:
        for relation in right_scope.relations:
            if relation.alias is not None and left_scope.has_table(relation.alias):
                expectation = "an alias for one of them"
                raise self.binding.at(node.at, f"two tables are called {shown(relation.alias)}", expectation)

    def _pair(self, node: Join, name: str, left_scope: Scope, right_scope: Scope) -> tuple[Value, Value]:
        """The columns of both sides that USING compares, converted to one type."""
        sides = []
        for scope in (left_scope, right_scope):
            columns = scope.find(None, name)
            if len(columns) != 1:
                reason = (
                    f"{'several columns are' if columns else 'no column of one side is'} called {shown(name)}"
                )
                raise self.binding.at(node.at, reason, "a column that each side has once")
            sides.append(columns[0].value(node.at, self.binding))
        type_ = common_type(side.type for side in sides)
        if type_ is None or not is_flat(type_):
            reason = f"{shown(name)} is {sides[0].named()} on one side and {sides[1].named()} on the other"
            raise self.binding.at(node.at, reason, "columns that can be compared, or ON")
        return converted(sides[0], type_), converted(sides[1], type_)


def _one_group(relation: Relation, *, single_row: bool = False) -> Joins:
    columns = frozenset(column.sql for column in relation.columns)
    return Joins(groups=(columns,), single_row=columns if single_row else frozenset())


def _under(alias: str, columns: tuple[ScopeColumn, ...]) -> tuple[ScopeColumn, ...]:
    return tuple(replace(column, sql=f"{alias}.{quoted(column.name)}", origin=None) for column in columns)


def _merged(side: Side, one: Value, other: Value) -> ScopeColumn:
    """The column that USING merges from two."""
    name = one.name or other.name
    match side:
        case Side.RIGHT:
            sql, nullable, origins = other.sql, other.nullable, other.origins
        case Side.FULL:
            sql, nullable = f"coalesce({one.sql}, {other.sql})", one.nullable or other.nullable
            origins = one.origins | other.origins
        case _:
            sql, nullable, origins = one.sql, one.nullable, one.origins
    return ScopeColumn(name=name or "", sql=sql, type=one.type, nullable=nullable, origins=origins)


def _beside(left_scope: Scope, right_scope: Scope) -> Scope:
    return Scope(
        left_scope.relations + right_scope.relations,
        left_scope.merged_columns + right_scope.merged_columns,
        left_scope.hidden_sql | right_scope.hidden_sql,
    )


def _joined(
    side: Side, left_scope: Scope, right_scope: Scope, merged_columns: tuple[ScopeColumn, ...]
) -> Scope:
    """The scope of a join: `merged_columns` replaces its columns; columns of rows that may be missing are nullable."""
    made_of = [
        column
        for each in merged_columns
        for scope in (left_scope, right_scope)
        for column in scope.find(None, each.name)
    ]
    if side in (Side.RIGHT, Side.FULL):
        left_scope = left_scope.after_outer_join()
    if side in (Side.LEFT, Side.FULL):
        right_scope = right_scope.after_outer_join()
    if side in (Side.SEMI, Side.ANTI):
        right_scope = Scope()
    both = _beside(left_scope, right_scope)
    names = {column.name.casefold() for column in merged_columns}
    other_columns = tuple(column for column in both.merged_columns if column.name.casefold() not in names)
    hidden_sql = both.hidden_sql.union(column.sql for column in made_of)
    return Scope(both.relations, merged_columns + other_columns, hidden_sql)
