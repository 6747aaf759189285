"""Where an expression of a view stands, and what it may name and hold there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from app.sql.queries.scope import Scope
from app.sql.queries.values import Value
from app.sql.syntax import Query


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause of a query.

    `outer`: what the query around a subquery has. `groups`: the SQL of what rows are grouped by; None if they are not.
    `aliases`: columns of the SELECT list that may be named. `aggregates`, `windows`, `queries`: why there may be none,
    or None if there may. `subquery` binds a query.
    """

    name: str
    scope: Scope
    subquery: Callable[[Query, Scope | None], Subquery]
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
    """A query inside an expression: its one column, if it has just one; whether it gives just one row."""

    sql: str
    columns: tuple[Value, ...]
    single_row: bool
