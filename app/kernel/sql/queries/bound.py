"""What binders of queries and of sources exchange: inputs, and bound queries with their columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from app.kernel.format.schema.schema import Schema
from app.kernel.sql.queries.clause import Clause
from app.kernel.sql.queries.cross_joins import NO_JOINS, Joins
from app.kernel.sql.queries.scope import Scope, ScopeColumn
from app.kernel.sql.queries.values import Value


class InputTable(Protocol):
    """The required attributes of a dataset that a query reads."""

    @property
    def schema(self) -> Schema: ...
    @property
    def record_key(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A query that is bound. `values`: its columns as values, under unique names if these were requested. `reads`: the
    number of reads of datasets. `single_row`: it always has one row.
    """

    sql: str
    columns: tuple[ScopeColumn, ...]
    reads: int
    single_row: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """A query of WITH. `name`: its name in the SQL."""

    name: str
    bound: BoundQuery


@dataclass(frozen=True, slots=True)
class Environment:
    """The queries of WITH that can be named, by name without regard to case."""

    queries: Mapping[str, Named] = field(default_factory=dict)

    def having(self, name: str, query: Named) -> Environment:
        return Environment({**self.queries, name.casefold(): query})


@dataclass(frozen=True, slots=True)
class From:
    """A FROM that is bound: its SQL, its scope, the number of reads of datasets, and what its joins compare."""

    sql: str
    scope: Scope
    reads: int
    joins: Joins = NO_JOINS


@dataclass(frozen=True, slots=True)
class BoundSelect:
    """A SELECT that is bound: its parts, for further checks. `groups`: None if rows are not grouped.

    `clause`: the clause of its SELECT list.
    """

    bound: BoundQuery
    clause: Clause
    source: From
    values: tuple[Value, ...]
    where: Value | None
    groups: tuple[Value, ...] | None
