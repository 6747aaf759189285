"""Binds queries of a view: their columns and their SQL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from app.kernel.codecs.faults import shown
from app.kernel.sql.queries.bound import BoundQuery, BoundSelect, Environment, From, InputTable, Named
from app.kernel.sql.queries.coercion import SqlType, Untyped, common_type, has_map
from app.kernel.sql.queries.relation_types import quoted
from app.kernel.sql.queries.scope import Scope, ScopeColumn
from app.kernel.sql.queries.selects import SelectBinder, check_names
from app.kernel.sql.queries.sources import SourceBinder
from app.kernel.sql.queries.values import Binding, Origins, Value, converted
from app.kernel.sql.syntax import Query, Select, SetOperation


class QueryBinder:
    """Binds queries. Raises InvalidView throughout."""

    def __init__(
        self, binding: Binding, inputs: Mapping[str, InputTable], *, allow_cross_joins: bool
    ) -> None:
        self.binding = binding
        self._allow_cross_joins = allow_cross_joins
        self._sources = SourceBinder(binding, inputs, self.query)

    def query(self, node: Query, environment: Environment, names: Sequence[str] = ()) -> BoundQuery:
        """A query with these names for its columns, or their own if there are none."""
        bound = self._query(node, environment, None, needs_names=not names)
        return self._renamed(node.at, bound, names) if names else bound

    def select(
        self, node: Select, environment: Environment, outer: Scope | None = None, *, needs_names: bool = True
    ) -> BoundSelect:
        """A SELECT; if not `needs_names`, its columns need no names."""
        binder = SelectBinder(
            node,
            environment,
            outer,
            binding=self.binding,
            query=partial(self._query, needs_names=False),
            allow_cross_joins=self._allow_cross_joins,
        )
        source = (
            From("", Scope(), 0) if node.source is None else self._sources.source(node.source, environment)
        )
        return binder.select(source, needs_names=needs_names)

    def _query(
        self, node: Query, environment: Environment, outer: Scope | None, *, needs_names: bool
    ) -> BoundQuery:
        parts = []
        for common in node.common:
            common_query = self.query(common.query, environment, common.columns)
            name = f"with{self._sources.alias()}"
            environment = environment.having(common.name, Named(name, common_query))
            parts.append(f"{name} AS ({common_query.sql})")
        if isinstance(node, Select):
            bound = self.select(node, environment, outer, needs_names=needs_names).bound
        else:
            bound = self._united(node, environment, needs_names=needs_names)
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
            if not node.all and has_map(type_):
                raise self.binding.at(node.at, "maps cannot be compared", f"{node.operator} ALL, or no maps")
            types.append(type_)
        columns = tuple(
            replace(one, type=type_, nullable=_nullable(node, one, other), origins=_origins(node, one, other))
            for one, other, type_ in zip(left_query.columns, right_query.columns, types, strict=True)
        )
        word = f"{node.operator} ALL" if node.all else node.operator
        sql = f"{_as_types(left_query, types)} {word} {_as_types(right_query, types)}"
        return BoundQuery(
            sql, columns, self.binding.checked_reads(node.at, left_query.reads + right_query.reads)
        )

    def _renamed(self, at: int, bound: BoundQuery, names: Sequence[str]) -> BoundQuery:
        """A query with its columns renamed to those of its alias."""
        if len(names) != len(bound.columns):
            reason = f"{len(names)} names are listed for {len(bound.columns)} columns"
            raise self.binding.at(at, reason, f"{len(bound.columns)} names")
        check_names(names, [at] * len(names), self.binding)
        columns = tuple(replace(column, name=name) for column, name in zip(bound.columns, names, strict=True))
        select_list = ", ".join(
            f"q.{quoted(old.name)} AS {quoted(new.name)}"
            for old, new in zip(bound.columns, columns, strict=True)
        )
        return replace(bound, sql=f"SELECT {select_list} FROM ({bound.sql}) AS q", columns=columns)


def _nullable(node: SetOperation, one: ScopeColumn, other: ScopeColumn) -> bool:
    match node.operator:
        case "UNION":
            return one.nullable or other.nullable
        case "INTERSECT":
            return one.nullable and other.nullable
    return one.nullable


def _origins(node: SetOperation, one: ScopeColumn, other: ScopeColumn) -> Origins:
    """The right side of EXCEPT only takes rows away."""
    return one.origins if node.operator == "EXCEPT" else one.origins | other.origins


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


def _shown(type_: SqlType) -> str:
    return type_.value if isinstance(type_, Untyped) else str(type_)
