"""Bound expressions of a view: their SQL for the engine, and their results."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from app.kernel.format.errors import HeadwaterError
from app.kernel.format.schema.types import BOOLEAN, Decimal
from app.kernel.sql.queries.coercion import SqlType, Untyped, as_decimal, computed_type, is_integer
from app.kernel.sql.queries.language import QUERIES
from app.kernel.sql.queries.relation_types import spark_type

# Short text may expand to much SQL: stars of wide tables, and aliases of long expressions, can be nested.
COLUMNS_MAX: Final = 20_000
ALIASED_CHARACTERS_MAX: Final = 1_000_000
# The engine expands a query of WITH at each place that names it.
READS_MAX: Final = 64
NOTHING: Final[frozenset[tuple[str, int]]] = frozenset()
Origins: TypeAlias = frozenset[tuple[str, str]]
NO_ORIGINS: Final[Origins] = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """A bound expression.

    `columns`: the columns of single rows that it needs, outside of aggregates, each with its position in the text; a
    value that rows are grouped by needs no columns. `name`: the column's or member's name, if it is one. `literal`: the
    value of a literal. `origins`: the columns of datasets that it is computed from, as names of dataset and column.
    """

    at: int
    sql: str
    type: SqlType
    nullable: bool
    columns: frozenset[tuple[str, int]] = NOTHING
    aggregates: bool = False
    windows: bool = False
    queries: bool = False
    name: str | None = None
    literal: Any = None
    origins: Origins = NO_ORIGINS

    def named(self) -> str:
        """The name of the type in errors."""
        return self.type.value if isinstance(self.type, Untyped) else str(self.type)


def made(
    at: int, sql: str, type_: SqlType, operands: Iterable[Value], *, nullable: bool | None = None
) -> Value:
    """A value that is computed from others: null where one of them is, unless `nullable` is specified."""
    operands = list(operands)
    return Value(
        at=at,
        sql=sql,
        type=type_,
        nullable=any(operand.nullable for operand in operands) if nullable is None else nullable,
        columns=NOTHING.union(*(operand.columns for operand in operands)),
        aggregates=any(operand.aggregates for operand in operands),
        windows=any(operand.windows for operand in operands),
        queries=any(operand.queries for operand in operands),
        origins=NO_ORIGINS.union(*(operand.origins for operand in operands)),
    )


def converted(value: Value, target: SqlType) -> Value:
    """The value converted to another type that holds it."""
    if value.type == target or isinstance(target, Untyped):
        return value
    return replace(
        value, sql=f"CAST({value.sql} AS {spark_type(target)})", type=target, name=None, literal=None
    )


def exact_decimal(value: Value) -> Decimal:
    """The decimal type of a decimal or integer value; a literal has its own number of digits."""
    if isinstance(value.literal, int) and is_integer(value.type):
        return Decimal(len(str(abs(value.literal))), 0)
    return as_decimal(value.type)


class Misfit(Exception):
    """The arguments do not match; `str` is what is expected."""


class Binding:
    """The state of one view's binding. Creates its errors.

    `read_columns`: columns of datasets that it needs, as names of dataset and column. `outer_columns`: the number of
    names in subqueries that refer to a column of the outer query.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.read_columns: set[tuple[str, str]] = set()
        self.outer_columns = 0
        self._columns = 0
        self._characters = 0

    def add_columns(self, at: int, count: int) -> None:
        """Counts columns that are not written individually. Raises InvalidView if there are too many."""
        self._columns += count
        if self._columns > COLUMNS_MAX:
            reason = "* and orders of rows without a key expand to too many columns"
            raise self.at(at, reason, f"at most {COLUMNS_MAX:,} in the whole view")

    def write_out(self, at: int, sql: str) -> None:
        """Counts the SQL that replaces an alias. Raises InvalidView if it becomes too long."""
        self._characters += len(sql)
        if self._characters > ALIASED_CHARACTERS_MAX:
            expectation = "a query in FROM that computes them"
            raise self.at(at, "aliases expand to too much SQL", expectation)

    def checked_reads(self, at: int, reads: int) -> int:
        """The number of reads of datasets by a query. Raises InvalidView if there are too many."""
        if reads > READS_MAX:
            expectation = f"at most {READS_MAX} times; a query of WITH counts wherever it is named"
            raise self.at(at, f"datasets are read {reads} times", expectation)
        return reads

    def at(self, at: int | None, reason: str, expectation: str) -> HeadwaterError:
        return QUERIES.invalid(self.text, at, reason, expectation)

    def mistyped(self, value: Value, what: str, expectation: str) -> HeadwaterError:
        return self.at(value.at, f"{what} does not support {value.named()}", expectation)


def as_condition(value: Value, binding: Binding) -> Value:
    """A value that is true, false or null. Raises InvalidView for a value of another type."""
    if value.type not in (BOOLEAN, Untyped.NULL):
        raise binding.at(value.at, f"a value of type {value.named()} is not a condition", "a boolean")
    return converted(value, BOOLEAN)


def common_numbers(one: Value, other: Value, *, divides: bool) -> list[Value]:
    """Two numbers as an operator's operands: as decimals if one of them is, else as the same type."""
    for value in (one, other):
        if value.type is Untyped.NULL:
            raise Misfit("CAST(NULL AS type)")
    kinds = one.type, other.type
    if Decimal in map(type, kinds) and all(isinstance(kind, Decimal) or is_integer(kind) for kind in kinds):
        return [converted(value, exact_decimal(value)) for value in (one, other)]
    type_ = computed_type("/" if divides else "+", *kinds)
    return [converted(one, type_), converted(other, type_)]
