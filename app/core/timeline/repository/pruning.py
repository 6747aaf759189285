"""Which files may have rows that a filter selects, decided by Postgres from the statistics of their rows.

The rules are those of `app.kernel.sql.conditions.prune`, and what Postgres cannot compare keeps the file. The operators
of `json` refuse a document that has a NUL character in any of its texts, so bounds are cut out of the text of the
document, whose form is that of the encoder. A quote in a value is escaped there, so no value looks like a member.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal as DecimalNumber
from typing import Any, Final

import pyarrow as pa
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Double,
    FromClause,
    Numeric,
    Text,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    or_,
    select,
    true,
)

from app.core.timeline.tables import files
from app.kernel.format.file_group import FileKind
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.format.schema.types import (
    STRING,
    Date,
    Decimal,
    FlatType,
    Integer,
    Real,
    Timestamp,
)
from app.kernel.format.schema.types.uuids import UUID
from app.kernel.sql.conditions.prune import RowFilter, like_prefix
from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Like,
    Not,
    OneOf,
    Operator,
    Or,
    Value,
)

# A statement that names more is planned for longer than it saves.
_LEAVES_MAX: Final = 64
_COLUMNS_MAX: Final = 16
_VALUES_MAX: Final = 16
_NUMBER: Final = r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?"
_DAY: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?"
_Truth = ColumnElement[bool]


@dataclass(frozen=True, kw_only=True)
class PrunedFiles:
    """`source`: the table of files, joined with the bounds of columns. `condition`: of files that are kept."""

    source: FromClause
    condition: _Truth


def pruned_files(selection: RowFilter) -> PrunedFiles:
    """The files that may have selected rows. Only base files are ever left out: other rows are known after a merge."""
    bounds = _FileBounds(selection)
    condition = bounds.may_be(selection.where.root, outcome=True)
    return PrunedFiles(source=bounds.source, condition=or_(files.c.kind != FileKind.BASE.value, condition))


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    """The least and greatest value of a column, null where unknown, and their form for comparison with literals."""

    low: ColumnElement[Any]
    high: ColumnElement[Any]
    form: Callable[[Value], ColumnElement[Any] | None]


class _FileBounds:
    """Conditions on the bounds of columns, and the table that they are conditions of."""

    def __init__(self, selection: RowFilter) -> None:
        self.source: FromClause = files
        self._ids = {field.name: field.id for field in selection.schema.fields}
        self._texts: dict[int, Any] = {}
        self._leaves = 0

    def may_be(self, condition: Condition, *, outcome: bool) -> _Truth:
        """Whether the condition may have this outcome for some row of a file."""
        match condition:
            case And(operands=operands) | Or(operands=operands):
                parts = [self.may_be(operand, outcome=outcome) for operand in operands]
                return (and_ if isinstance(condition, And) is outcome else or_)(*parts)
            case Not(operand=operand):
                return self.may_be(operand, outcome=not outcome)
            case Constant(value=value):
                return true() if value is outcome else false()
        texts = self._texts_of(condition.column)
        if texts is None:
            return true()
        if isinstance(condition, IsNull):
            return _some_null(texts) if outcome else _some_value(texts)
        bounds = _typed_bounds(texts, condition.column.flat_type())
        return true() if bounds is None else and_(_some_value(texts), _leaf(condition, bounds, outcome))

    def _texts_of(self, column: Column) -> Any:
        """The texts of a column's statistics; None for those that are not looked up."""
        number = self._ids.get(column.path[0]) if len(column.path) == 1 else None
        self._leaves += 1
        if number is None or self._leaves > _LEAVES_MAX:
            return None
        if number not in self._texts:
            if len(self._texts) == _COLUMNS_MAX:
                return None
            texts = _statistics(number)
            self.source = self.source.join(texts, true())
            self._texts[number] = texts
        return self._texts[number].c


def _statistics(number: int) -> Any:
    """The texts of the members of a column's statistics: JSON values, empty where they are missing."""
    document = cast(files.c.statistics, Text)
    # Without its offset a query is made part of the outer one, and the document is searched for each of its uses.
    members = select(func.split_part(document, f'"{number}":{{"minimum":', 2).label("members")).offset(0)
    members_of = members.correlate(files).subquery()
    after = func.split_part(members_of.c.members, ',"maximum":', 2)
    return (
        select(
            func.split_part(members_of.c.members, ',"maximum":', 1).label("low"),
            func.split_part(after, ',"null_count":', 1).label("high"),
            func.split_part(func.split_part(after, ',"null_count":', 2), "}", 1).label("nulls"),
        )
        .offset(0)
        .correlate(files)
        .lateral(f"statistics_{number}")
    )


def _null_count(texts: Any) -> ColumnElement[int]:
    return case((texts.nulls.regexp_match("^[0-9]{1,18}$"), cast(texts.nulls, BigInteger)))


def _some_null(texts: Any) -> _Truth:
    return func.coalesce(_null_count(texts) > 0, true())


def _some_value(texts: Any) -> _Truth:
    return func.coalesce(_null_count(texts) < files.c.row_count, true())


def _typed_bounds(texts: Any, data_type: FlatType) -> _Bounds | None:
    """The bounds as Postgres compares them; None for a type whose texts have another order than its values."""
    match data_type:
        case Integer():
            return _numbers(texts, "^-?[0-9]{1,20}$", Numeric())
        case Real():
            return _numbers(texts, f"^{_NUMBER}$", Double())
        case Decimal():
            return _numbers(texts, f'^"{_NUMBER}"$', Numeric())
        case Date():
            return _quoted(texts, _DAY, data_type)
        case Timestamp():
            return _quoted(texts, _DAY + _CLOCK + (r"\+00:00" if data_type.zoned else ""), data_type)
    if data_type == STRING:
        return _Bounds(low=_plain_text(texts.low), high=_plain_text(texts.high), form=_text)
    if data_type == UUID:
        return _quoted(texts, "[0-9a-f-]{36}", data_type)
    return None


def _numbers(texts: Any, pattern: str, kind: Any) -> _Bounds:
    def number(text: ColumnElement[str]) -> ColumnElement[Any]:
        return case((text.regexp_match(pattern), cast(func.btrim(text, '"'), kind)))

    def form(value: Value) -> ColumnElement[Any]:
        is_real = isinstance(kind, Double)
        return literal(float(value) if is_real else DecimalNumber(str(value)), kind)

    return _Bounds(low=number(texts.low), high=number(texts.high), form=form)


def _quoted(texts: Any, pattern: str, data_type: FlatType) -> _Bounds:
    """Bounds whose texts, with their quotes, are ordered as the values are."""

    def quoted(text: ColumnElement[str]) -> ColumnElement[Any]:
        return case((text.regexp_match(f'^"{pattern}"$'), text)).collate("C")

    def form(value: Value) -> ColumnElement[Any] | None:
        try:
            stored = value if isinstance(value, str) else pa.scalar(value, data_type.arrow).as_py()
        except (ValueError, OverflowError):
            return None
        return literal(f'"{stored if isinstance(stored, str) else stored_bound(stored, data_type)}"', Text)

    return _Bounds(low=quoted(texts.low), high=quoted(texts.high), form=form)


def _plain_text(text: ColumnElement[str]) -> ColumnElement[Any]:
    """The string; null for one with characters that are escaped, or an unknown one."""
    is_plain = and_(func.left(text, 1) == '"', func.strpos(text, "\\") == 0)
    return case((is_plain, func.substr(text, 2, func.length(text) - 2))).collate("C")


def _text(value: Value) -> ColumnElement[Any] | None:
    """A literal; None for a text that Postgres cannot have."""
    text = str(value)
    storable = "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
    return literal(text, Text) if storable else None


def _leaf(condition: Comparison | OneOf | Like, bounds: _Bounds, outcome: bool) -> _Truth:
    """Whether the condition may have the outcome for some value."""
    match condition:
        case Comparison(operator=operator, value=value):
            return _compared(bounds, operator, bounds.form(value), outcome)
        case OneOf(values=values) if outcome and len(values) <= _VALUES_MAX:
            return or_(*(_compared(bounds, Operator.EQUAL, bounds.form(value), True) for value in values))
        case Like(pattern=pattern) if outcome:
            prefix, rest = like_prefix(pattern)
            form = bounds.form(prefix)
            if not rest:
                return _compared(bounds, Operator.EQUAL, form, True)
            return true() if form is None or not prefix else _begins(bounds, form)
    return true()


def _begins(bounds: _Bounds, prefix: ColumnElement[Any]) -> _Truth:
    return and_(
        _unknown_or(bounds.high, bounds.high >= prefix),
        _unknown_or(bounds.low, or_(bounds.low <= prefix, func.starts_with(bounds.low, prefix))),
    )


def _compared(bounds: _Bounds, operator: Operator, value: ColumnElement[Any] | None, outcome: bool) -> _Truth:
    if value is None:
        return true()
    low, high = bounds.low, bounds.high
    match operator, outcome:
        case Operator.EQUAL, True:
            return and_(_unknown_or(low, low <= value), _unknown_or(high, high >= value))
        case Operator.EQUAL, False:
            return func.coalesce(or_(low != high, low != value), true())
        case (Operator.LESS, True) | (Operator.GREATER_OR_EQUAL, False):
            return _unknown_or(low, low < value)
        case (Operator.LESS_OR_EQUAL, True) | (Operator.GREATER, False):
            return _unknown_or(low, low <= value)
        case (Operator.GREATER, True) | (Operator.LESS_OR_EQUAL, False):
            return _unknown_or(high, high > value)
    return _unknown_or(high, high >= value)


def _unknown_or(bound: ColumnElement[Any], condition: _Truth) -> _Truth:
    return or_(bound.is_(None), condition)
