"""Exact conversions of literals to values of a column's type.

A literal need not be a value of the type: `n = 1.5` and `n < 300` also have an answer for a column of int8. Types with
steps (integers, decimals, dates, timestamps) find it on the ladder of their values. The answer is a comparison with a
value of the type, or the same for every row with a value.
"""

from __future__ import annotations

import datetime as dt
import decimal
import math
import re
from collections.abc import Sequence
from enum import Enum
from fractions import Fraction
from typing import Final

import msgspec

from app.kernel.codecs.faults import shown
from app.kernel.codecs.value_parser import RejectedValue, read_text
from app.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    TICKS,
    Date,
    Decimal,
    FlatType,
    Integer,
    Real,
    RefusedText,
    Steps,
    Timestamp,
    parse_type,
)
from app.kernel.sql.conditions.tree import (
    And,
    Column,
    Comparison,
    Condition,
    Constant,
    IsNull,
    Not,
    OneOf,
    Operator,
    Or,
    Value,
)

_NUMBER: Final = re.compile(r"[+-]?[0-9]+\.?[0-9]*([eE][+-]?[0-9]+)?")
_ZONED: Final = re.compile(r".*:[0-9]{2}(\.[0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)", re.IGNORECASE)
_DAY: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HEX: Final = re.compile(r"([0-9A-Fa-f]{2})*")
# No type has numbers near these; arithmetic on larger ones is work that a hostile text must not cause.
_NUMBER_CHARACTERS_MAX: Final = 1_000
_EXPONENT_MAX: Final = 1_000
_EPOCH: Final = dt.date(1970, 1, 1)
_UNKNOWN: Final = Constant(value=None)


class Kind(str, Enum):
    """The kind of a literal."""

    NUMBER = "a number"
    STRING = "a string"
    BOOLEAN = "TRUE or FALSE"
    NULL = "NULL"
    DATE = "a DATE"
    TIMESTAMP = "a TIMESTAMP"
    BINARY = "bytes in hexadecimal"


class Literal(msgspec.Struct, frozen=True, kw_only=True):
    """A literal as in the text, without quotes; a number with its sign."""

    kind: Kind
    text: str


class Unfit(ValueError):
    """The literal cannot be compared with values of the column's type. The message says what is expected."""


def compared(column: Column, operator: Operator, literal: Literal) -> Condition:
    """The comparison of the column's value with the literal. Raises Unfit."""
    data_type = parse_type(column.type)
    if not isinstance(data_type, FlatType):
        raise Unfit(f"IS NULL or IS NOT NULL: the column is {data_type}")
    if literal.kind is Kind.NULL:
        return _UNKNOWN
    if operator is not Operator.EQUAL and data_type == BOOLEAN:
        raise Unfit("= or !=: booleans have no order")
    steps = data_type.steps
    if steps is None:
        return _compared_plainly(column, operator, _plain_value(data_type, literal))
    return _compared_by_steps(column, operator, _place(data_type, literal), steps)


def one_of(column: Column, equalities: Sequence[Condition]) -> Condition:
    """The condition that one of `equalities` is true, each of which is a result of `compared` for the column."""
    # A dict keeps the order of first occurrence.
    values = tuple({part.value: None for part in equalities if isinstance(part, Comparison)})
    condition = (
        OneOf(column=column, values=values) if values else _same_for_every_value(column, outcome=False)
    )
    return Or(operands=(condition, _UNKNOWN)) if _UNKNOWN in equalities else condition


def _same_for_every_value(column: Column, *, outcome: bool) -> Condition:
    """True, or false, for every value of the column; unknown where it is null."""
    null = IsNull(column=column)
    return Or(operands=(Not(operand=null), _UNKNOWN)) if outcome else And(operands=(null, _UNKNOWN))


def _compared_by_steps(column: Column, operator: Operator, place: Fraction, ladder: Steps) -> Condition:
    """`place` is the position of the literal in steps. There is no value between two steps, or beyond the ends."""
    step = math.floor(place)
    on_step = place == step
    match operator:
        case Operator.EQUAL:
            if not on_step or not ladder.low <= step <= ladder.high:
                return _same_for_every_value(column, outcome=False)
        case Operator.LESS | Operator.LESS_OR_EQUAL:
            last = step - 1 if on_step and operator is Operator.LESS else step
            if not ladder.low <= last < ladder.high:
                return _same_for_every_value(column, outcome=last >= ladder.high)
            operator = operator if on_step else Operator.LESS_OR_EQUAL
        case Operator.GREATER | Operator.GREATER_OR_EQUAL:
            first = step if on_step and operator is Operator.GREATER_OR_EQUAL else step + 1
            if not ladder.low < first <= ladder.high:
                return _same_for_every_value(column, outcome=first <= ladder.low)
            operator = operator if on_step else Operator.GREATER
    return Comparison(column=column, operator=operator, value=_value_at(step, column.flat_type()))


def _value_at(step: int, data_type: FlatType) -> Value:
    if isinstance(data_type, Decimal):
        return f"{decimal.Decimal(step).scaleb(-data_type.scale, _WIDE):f}"
    return step


_WIDE: Final = decimal.Context(prec=_NUMBER_CHARACTERS_MAX)


def _compared_plainly(column: Column, operator: Operator, value: Value) -> Condition:
    if isinstance(value, float) and math.isinf(value):
        # The literal exceeds every finite number, and infinity is never stored.
        below = operator in {Operator.LESS, Operator.LESS_OR_EQUAL}
        outcome = operator is not Operator.EQUAL and below == (value > 0)
        return _same_for_every_value(column, outcome=outcome)
    return Comparison(column=column, operator=operator, value=value)


def _plain_value(data_type: FlatType, literal: Literal) -> Value:
    """The value of a type without steps that equals the literal, or for numbers is nearest to it."""
    match literal.kind:
        case Kind.BOOLEAN if data_type == BOOLEAN:
            return literal.text == "TRUE"
        case Kind.BINARY if data_type == BINARY:
            if not _HEX.fullmatch(literal.text):
                raise Unfit("an even number of hexadecimal digits, as in X'00FF'")
            return literal.text.lower()
        case Kind.NUMBER if isinstance(data_type, Real):
            _number(literal)
            try:
                value: float = read_text(literal.text, data_type)
            except RejectedValue:
                value = -math.inf if literal.text.startswith("-") else math.inf
            return value + 0.0  # of the two zeros, the one without a sign
        case Kind.STRING:
            return _of_string(data_type, literal)
    raise _refusal(data_type, literal)


def _of_string(data_type: FlatType, literal: Literal) -> Value:
    try:
        value: Value | None = data_type.literal(literal.text)
    except RefusedText as error:
        raise Unfit(f"{data_type.literal_example}, got {shown(literal.text)}, {error}") from None
    if value is None:
        raise _refusal(data_type, literal)
    return value


def _place(data_type: FlatType, literal: Literal) -> Fraction:
    match data_type, literal.kind:
        case Date(), Kind.DATE | Kind.STRING:
            return Fraction(_days(literal.text))
        case Timestamp(), Kind.TIMESTAMP | Kind.DATE | Kind.STRING:
            return _seconds(data_type, literal) * Fraction(TICKS[data_type.unit])
        case Decimal(), Kind.NUMBER | Kind.STRING:
            return _number(literal) * Fraction(10**data_type.scale)
        case Integer(), Kind.NUMBER:
            return _number(literal)
    raise _refusal(data_type, literal)


def _number(literal: Literal) -> Fraction:
    match = _NUMBER.fullmatch(literal.text)
    if match is None and literal.kind is Kind.NUMBER:
        raise Unfit(f"a digit before the point, got {shown(literal.text)}")
    if match is None:
        raise Unfit(f"a number, got {shown(literal.text)}")
    exponent = match[1] or "e0"
    if (
        len(literal.text) > _NUMBER_CHARACTERS_MAX
        or len(exponent) > _NUMBER_CHARACTERS_MAX
        or abs(int(exponent[1:])) > _EXPONENT_MAX
    ):
        raise Unfit(f"a number of {_NUMBER_CHARACTERS_MAX:,} digits at most")
    return Fraction(literal.text)


def _days(text: str) -> int:
    try:
        day: dt.date = read_text(text, DATE)
    except RejectedValue as error:
        raise Unfit(_after_expected(error)) from None
    return (day - _EPOCH).days


def _seconds(data_type: Timestamp, literal: Literal) -> Fraction:
    """Seconds since 1970-01-01. A date is its midnight. A literal without a zone is UTC if the column has instants."""
    if literal.kind is Kind.DATE or _DAY.fullmatch(literal.text):
        return Fraction(_days(literal.text) * 86_400)
    has_zone = _ZONED.fullmatch(literal.text) is not None
    if has_zone and not data_type.zoned:
        raise Unfit(f"a time without a zone, since the column is {data_type}, got {shown(literal.text)}")
    try:
        ticks: int = read_text(literal.text, Timestamp("us", zoned=has_zone))
    except RejectedValue as error:
        raise Unfit(_after_expected(error)) from None
    return Fraction(ticks, TICKS["us"])


def _after_expected(error: RejectedValue) -> str:
    return str(error).removeprefix("expected ")


def _refusal(data_type: FlatType, literal: Literal) -> Unfit:
    got = (
        shown(literal.text)
        if literal.kind is Kind.STRING
        else f"{literal.kind.value} ({shown(literal.text)})"
    )
    return Unfit(f"{data_type.literal_example}, since the column is {data_type}, got {got}")
