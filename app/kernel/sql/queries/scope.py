"""Scopes: the columns that a part of a query can name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from app.kernel.codecs.faults import shown
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.schema.types import Struct
from app.kernel.format.similar_names import similar_names
from app.kernel.sql.names import listed, name_for_string, no_such
from app.kernel.sql.queries.coercion import SqlType, is_flat
from app.kernel.sql.queries.relation_types import quoted
from app.kernel.sql.queries.values import NO_ORIGINS, Binding, Origins, Value
from app.kernel.sql.syntax import Name


@dataclass(frozen=True, slots=True)
class ScopeColumn:
    """A column of a relation. `sql`: its SQL. `origin`: the names of its dataset and column, if it belongs to a
    dataset. `origins`: the columns of datasets that it is computed from.
    """

    name: str
    sql: str
    type: SqlType
    nullable: bool
    origin: tuple[str, str] | None = None
    origins: Origins = NO_ORIGINS

    def value(self, at: int, binding: Binding) -> Value:
        """The value of the column, named at a position. Raises InvalidView."""
        if self.origin is not None:
            if "${" in self.name or "${" in str(self.type):
                # Spark substitutes settings and environment variables for such text wherever it occurs.
                raise binding.at(
                    at, "names with `${` in them are not part of the SQL of views", "other columns"
                )
            binding.read_columns.add(self.origin)
        return Value(
            at=at,
            sql=self.sql,
            type=self.type,
            nullable=self.nullable,
            columns=frozenset({(self.name, at)}),
            name=self.name,
            origins=self.origins,
        )


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation in FROM. `key`: columns that identify its rows; empty if unknown.

    `dataset`: its name, if the relation is a dataset.
    """

    alias: str | None
    columns: tuple[ScopeColumn, ...]
    key: tuple[str, ...] = ()
    dataset: str | None = None

    def after_outer_join(self) -> Relation:
        """The relation with nullable columns."""
        return replace(self, columns=_maybe_missing(self.columns))

    def tie_breakers(self) -> Iterator[ScopeColumn]:
        """Columns that order its rows, except those with equal values throughout."""
        for column in self.columns:
            if column.name in self.key or (not self.key and is_flat(column.type)):
                yield column


@dataclass(frozen=True, slots=True)
class Scope:
    """The relations of a FROM.

    `merged_columns`: columns of USING, which precede all others. `hidden_sql`: the SQL of the columns that they
    replace, which can only be named with their table.
    """

    relations: tuple[Relation, ...] = ()
    merged_columns: tuple[ScopeColumn, ...] = ()
    hidden_sql: frozenset[str] = frozenset()

    def after_outer_join(self) -> Scope:
        """The scope with nullable columns."""
        relations = tuple(relation.after_outer_join() for relation in self.relations)
        return replace(self, relations=relations, merged_columns=_maybe_missing(self.merged_columns))

    def find(self, table: str | None, name: str) -> list[ScopeColumn]:
        """The columns that the name may refer to."""
        return [column for column in self.starred(table) if _same(column.name, name)]

    def has_table(self, table: str) -> bool:
        return any(relation.alias is not None and _same(relation.alias, table) for relation in self.relations)

    def starred(self, table: str | None) -> list[ScopeColumn]:
        """The columns of `*`, or of `table.*`."""
        if table is None:
            return [
                *self.merged_columns,
                *(column for column in self._columns() if column.sql not in self.hidden_sql),
            ]
        return [
            column
            for relation in self.relations
            if relation.alias is not None and _same(relation.alias, table)
            for column in relation.columns
        ]

    def _columns(self) -> Iterator[ScopeColumn]:
        for relation in self.relations:
            yield from relation.columns

    def all_columns(self) -> Iterator[ScopeColumn]:
        """The columns of all relations, and those of USING."""
        yield from self.merged_columns
        yield from self._columns()

    def names(self) -> list[str]:
        return [column.name for column in self._columns()]


def column_of(name: Name, scope: Scope, binding: Binding) -> Value | None:
    """The value of a column, or of a member of one; None if the scope has no such column. Raises InvalidView."""
    columns: list[ScopeColumn] = []
    part_count = 0
    if len(name.parts) > 1 and scope.has_table(name.parts[0]):
        columns, part_count = scope.find(name.parts[0], name.parts[1]), 2
    if not columns:
        columns, part_count = scope.find(None, name.parts[0]), 1
    if not columns:
        return None
    if len(columns) > 1:
        expectation = "the alias of its table in front"
        raise binding.at(
            name.at, f"{shown(name.parts[part_count - 1])} may be one of several columns", expectation
        )
    [column] = columns
    value = column.value(name.at, binding)
    for part in name.parts[part_count:]:
        value = member_of(value, part, binding)
    return value


def member_of(value: Value, name: str, binding: Binding) -> Value:
    """A member of a struct. Raises InvalidView."""
    if not isinstance(value.type, Struct):
        raise binding.at(value.at, f"a value of type {value.named()} has no members", "a member of a struct")
    for member, type_ in value.type.members:
        if member == name:
            sql = f"{value.sql}.{quoted(member)}"
            return replace(value, sql=sql, type=type_, nullable=True, name=member, literal=None)
    names = [member for member, _ in value.type.members]
    similar = similar_names(name, names)
    raise binding.at(value.at, no_such("member", name, similar), listed(similar or names))


def no_column(name: Name, scopes: Iterable[Scope], binding: Binding) -> HeadwaterError:
    """The error for a name that no scope has."""
    names = [column for scope in scopes for column in scope.names()]
    similar = similar_names(name.parts[-1], names)
    reason = no_such("column", ".".join(name.parts), similar)
    expectation = listed(similar or names) or "a column of a table in FROM"
    if binding.text[name.at] == '"' and not similar:
        hint, literal = name_for_string(binding.text, name.at, ".".join(name.parts))
        return binding.at(name.at, f"{reason}: {hint}", f"{literal}, or one of {expectation}")
    return binding.at(name.at, reason, expectation)


def _maybe_missing(columns: tuple[ScopeColumn, ...]) -> tuple[ScopeColumn, ...]:
    return tuple(replace(column, nullable=True) for column in columns)


def _same(one: str, other: str) -> bool:
    """Whether two names are equal without regard to case, as in the engine."""
    return one.casefold() == other.casefold()
