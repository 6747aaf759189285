"""Clauses: the place of an expression in a view, and the names and syntax that are allowed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from app.kernel.sql.queries.scope import Scope
from app.kernel.sql.queries.values import Value
from app.kernel.sql.syntax import Query


def no_subquery(query: Query, outer: Scope | None) -> Subquery:
    """In a clause without `subquery`, which needs a reason in `queries`. Raises AssertionError."""
    del query, outer
    raise AssertionError("unreachable: the clause has no queries")


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a query.

    `outer`: the scope of the query around a subquery. `groups`: the SQL of the expressions that rows are grouped by;
    None without grouping. `aliases`: columns of the SELECT list that may be named. `aggregates`, `windows`, `queries`:
    the reason why they are not allowed, or None if they are. `subquery` binds a query, if the clause allows any.
    """

    name: str
    scope: Scope
    subquery: Callable[[Query, Scope | None], Subquery] = no_subquery
    outer: Scope | None = None
    groups: frozenset[str] | None = None
    aliases: Mapping[str, Value] = field(default_factory=dict)
    aggregates: str | None = None
    windows: str | None = None
    queries: str | None = None

    def inside(self, what: str) -> Clause:
        """The same for the arguments of an aggregate, or of a window function."""
        return replace(
            self, name=what, queries=f"there are no queries in {what}", windows=f"there are none in {what}"
        )


@dataclass(frozen=True, slots=True)
class Subquery:
    """A query inside an expression: its column, if it has exactly one, and whether it always has exactly one row."""

    sql: str
    columns: tuple[Value, ...]
    single_row: bool
