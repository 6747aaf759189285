"""What an expression of a view is once its columns are known: its SQL for the engine, and what its result is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from app.format.errors import HeadwaterError
from app.format.schema.types import Decimal
from app.sql.queries.coercion import SqlType, Untyped, as_decimal, computed_type, is_integer
from app.sql.queries.language import QUERIES
from app.sql.queries.relation_types import spark_type

# What is short to write may be long to run: stars of wide tables within one another, aliases of long expressions.
COLUMNS_MAX: Final = 20_000
ALIASED_CHARACTERS_MAX: Final = 1_000_000
NOTHING: Final[frozenset[tuple[str, int]]] = frozenset()


@dataclass(frozen=True, slots=True)
class Value:
    """`columns`: those it needs of a row by itself, outside of aggregates, each with its place in the text; a value
    that rows are grouped by needs none. `name`: that of the column, or member of one, that it is. `literal`: what was
    written.
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

    def named(self) -> str:
        """The type as errors name it."""
        return self.type.value if isinstance(self.type, Untyped) else str(self.type)


def made(
    at: int, sql: str, type_: SqlType, operands: Iterable[Value], *, nullable: bool | None = None
) -> Value:
    """A value that is made of others: null where one of them is, unless `nullable` is specified."""
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
    )


def converted(value: Value, target: SqlType) -> Value:
    """The same value as another type that holds it."""
    if value.type == target or isinstance(target, Untyped):
        return value
    return replace(
        value, sql=f"CAST({value.sql} AS {spark_type(target)})", type=target, name=None, literal=None
    )


def exact_decimal(value: Value) -> Decimal:
    """The decimal for a value of a decimal or an integer type; a literal has as many digits as were written."""
    if isinstance(value.literal, int) and is_integer(value.type):
        return Decimal(len(str(abs(value.literal))), 0)
    return as_decimal(value.type)


class Misfit(Exception):
    """The arguments do not go together; `str` is what was expected instead."""


class Binding:
    """What is noted while one view is bound. Makes its errors.

    `read`: columns of datasets that it needs, as names of dataset and column. `outer_columns`: how often subqueries
    named a column of the query around them.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.read: set[tuple[str, str]] = set()
        self.outer_columns = 0
        self._columns = 0
        self._characters = 0

    def add_columns(self, at: int, count: int) -> None:
        """Counts columns that are not written one by one. Raises InvalidView if they become too many."""
        self._columns += count
        if self._columns > COLUMNS_MAX:
            reason = "stars, and orders of rows without a key, stand for too many columns"
            raise self.at(at, reason, f"at most {COLUMNS_MAX:,} in all of the view")

    def write_out(self, at: int, sql: str) -> None:
        """Counts SQL that stands in the place of an alias. Raises InvalidView if it becomes too much."""
        self._characters += len(sql)
        if self._characters > ALIASED_CHARACTERS_MAX:
            expected = "a query in FROM that computes them"
            raise self.at(at, "aliases stand for too much SQL", expected)

    def at(self, at: int | None, reason: str, expected: str) -> HeadwaterError:
        return QUERIES.invalid(self.text, at, reason, expected)

    def mistyped(self, value: Value, what: str, expected: str) -> HeadwaterError:
        return self.at(value.at, f"{what} does not take {value.named()}", expected)


def common_numbers(left: Value, right: Value, *, divides: bool) -> list[Value]:
    """Two numbers as an operator takes them: as decimals if one is, else as the same type."""
    for value in (left, right):
        if value.type is Untyped.NULL:
            raise Misfit("CAST(NULL AS type)")
    kinds = left.type, right.type
    if Decimal in map(type, kinds) and all(isinstance(kind, Decimal) or is_integer(kind) for kind in kinds):
        return [converted(value, exact_decimal(value)) for value in (left, right)]
    shared = computed_type("/" if divides else "+", *kinds)
    return [converted(left, shared), converted(right, shared)]
