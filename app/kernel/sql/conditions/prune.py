"""Pruning: whether rows of a file, or of a row group, can match a filter, from bounds and null counts alone.

Unknown statistics can be anything, so the result never depends on statistics being present.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import comparable_bound
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import parse_type
from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    Filter,
    IsNull,
    Like,
    Not,
    OneOf,
    Operator,
    Or,
    Value,
)

_NO_STATISTICS: Final = ColumnStatistics()


class RowFilter(msgspec.Struct, frozen=True, kw_only=True):
    """The rows that a filter selects. `schema`: the schema of the filter, whatever schema a file was written under."""

    where: Filter
    schema: Schema


def may_match(
    selection: Filter, statistics: Mapping[str, ColumnStatistics], schema: Schema, row_count: int
) -> bool:
    """False only if certainly no row matches.

    `statistics`: of a file, or of one row group, by field id. `row_count`: of that file or row group as stored,
    including rows that a deletion vector deletes. `schema` has the field ids. A column may be missing from both.
    """
    return row_count > 0 and _Rows(statistics, schema, row_count).outcomes(selection.root).true


def must_match(
    selection: Filter, statistics: Mapping[str, ColumnStatistics], schema: Schema, row_count: int
) -> bool:
    """True only if certainly every row matches. The arguments are those of `may_match`."""
    if row_count == 0:
        return True
    outcomes = _Rows(statistics, schema, row_count).outcomes(selection.root)
    return not outcomes.false and not outcomes.unknown


class _Outcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The possible results of a condition for some row."""

    true: bool
    false: bool
    unknown: bool


class _Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """The bounds of a column's values: the first and the last, None if unknown; whether some values are null, and
    whether some are not.

    Bounds and literals are of one comparable type: numbers, strings, bytes; dates and times as days and ticks.
    """

    low: Any
    high: Any
    some_null: bool
    some_value: bool

    def outcomes(self, *, true: bool, false: bool) -> _Outcomes:
        """The outcomes of a condition that is unknown for nulls, and true or false for values only as specified."""
        return _Outcomes(
            true=self.some_value and true, false=self.some_value and false, unknown=self.some_null
        )

    def may_hold(self, value: Any) -> bool:
        return (self.low is None or self.low <= value) and (self.high is None or value <= self.high)

    def is_only(self) -> bool:
        """Whether all values are equal."""
        return self.low is not None and self.low == self.high


class _Rows:
    """Rows of which only statistics are known."""

    def __init__(self, statistics: Mapping[str, ColumnStatistics], schema: Schema, row_count: int) -> None:
        self.statistics = statistics
        self.schema = schema
        self.row_count = row_count
        self._ids: dict[str, str | None] = {}

    def outcomes(self, condition: Condition) -> _Outcomes:
        match condition:
            case And(operands=operands):
                return _negated(_any(_negated(self.outcomes(operand)) for operand in operands))
            case Or(operands=operands):
                return _any(self.outcomes(operand) for operand in operands)
            case Not(operand=operand):
                return _negated(self.outcomes(operand))
            case Constant(value=value):
                return _Outcomes(true=value is True, false=value is False, unknown=value is None)
            case IsNull(column=column):
                bounds = self._bounds(column)
                return _Outcomes(true=bounds.some_null, false=bounds.some_value, unknown=False)
            case Comparison(column=column, operator=operator, value=value):
                return _compared(self._bounds(column), operator, _comparable([value], column)[0])
            case OneOf(column=column, values=values):
                bounds = self._bounds(column)
                possible = _comparable(values, column)
                return bounds.outcomes(
                    true=any(bounds.may_hold(value) for value in possible),
                    false=not (bounds.is_only() and bounds.low in possible),
                )
            case Like(column=column, pattern=pattern):
                return _like(self._bounds(column), pattern)

    def _bounds(self, column: Column) -> _Bounds:
        # There are no statistics of a struct's members.
        field_id = self._field_id(column.path[0]) if len(column.path) == 1 else None
        statistics = self.statistics.get(field_id, _NO_STATISTICS) if field_id else _NO_STATISTICS
        data_type = parse_type(column.type)
        return _Bounds(
            low=comparable_bound(statistics.minimum, data_type),
            high=comparable_bound(statistics.maximum, data_type),
            some_null=statistics.null_count is None or statistics.null_count > 0,
            some_value=statistics.null_count is None or statistics.null_count < self.row_count,
        )

    def _field_id(self, name: str) -> str | None:
        """The id of a column. Few columns of a schema are looked up, and most of them once."""
        if name not in self._ids:
            self._ids[name] = next(
                (str(field.id) for field in self.schema.fields if field.name == name), None
            )
        return self._ids[name]


def _any(operands: Iterable[_Outcomes]) -> _Outcomes:
    """The outcomes of the disjunction, if a row can combine the outcomes of the operands in any way."""
    each = list(operands)
    return _Outcomes(
        true=any(operand.true for operand in each),
        false=all(operand.false for operand in each),
        unknown=any(operand.unknown for operand in each)
        and all(operand.false or operand.unknown for operand in each),
    )


def _negated(outcomes: _Outcomes) -> _Outcomes:
    return _Outcomes(true=outcomes.false, false=outcomes.true, unknown=outcomes.unknown)


def _compared(bounds: _Bounds, operator: Operator, value: Any) -> _Outcomes:
    low, high = bounds.low, bounds.high
    match operator:
        case Operator.EQUAL:
            return bounds.outcomes(true=bounds.may_hold(value), false=not (bounds.is_only() and low == value))
        case Operator.LESS:
            return bounds.outcomes(true=low is None or low < value, false=high is None or high >= value)
        case Operator.LESS_OR_EQUAL:
            return bounds.outcomes(true=low is None or low <= value, false=high is None or high > value)
        case Operator.GREATER:
            return bounds.outcomes(true=high is None or high > value, false=low is None or low <= value)
        case Operator.GREATER_OR_EQUAL:
            return bounds.outcomes(true=high is None or high >= value, false=low is None or low < value)


def _like(bounds: _Bounds, pattern: str) -> _Outcomes:
    """Strings with one prefix are adjacent in order, so a pattern is bounded by its prefix."""
    prefix, rest = like_prefix(pattern)
    low, high = bounds.low, bounds.high
    if not rest:
        return _compared(bounds, Operator.EQUAL, prefix)
    begins = (high is None or high >= prefix) and (low is None or low <= prefix or low.startswith(prefix))
    every_begins = low is not None and high is not None and low.startswith(prefix) and high.startswith(prefix)
    return bounds.outcomes(true=begins, false=not (rest.strip("%") == "" and (every_begins or not prefix)))


def like_prefix(pattern: str) -> tuple[str, str]:
    """The prefix of every string that matches a pattern of LIKE, and the rest of the pattern."""
    prefix = []
    place = 0
    while place < len(pattern) and pattern[place] not in "%_":
        place += pattern[place] == "\\"
        prefix.append(pattern[place])
        place += 1
    return "".join(prefix), pattern[place:]


def _comparable(values: Sequence[Value], column: Column) -> Sequence[Any]:
    """Literals in the form of their column's bounds."""
    return list(map(column.flat_type().filter_value, values))
