"""Coercion: the common type of an operator's operands and the type of its result, by Spark's rules.

The SQL of a view has every conversion explicitly: nothing depends on implicit conversions of the engine.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import reduce
from typing import Final, TypeAlias

from app.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    FLOAT,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    DataType,
    Decimal,
    FlatType,
    List,
    Map,
    Struct,
)


class Untyped(Enum):
    """Operands without a column type."""

    NULL = "null"
    INTERVAL = "interval"


SqlType: TypeAlias = DataType | Untyped

# The integers, narrow to wide, and the number of digits of their values.
_INTEGERS: Final[dict[SqlType, int]] = {INT8: 3, INT16: 5, INT32: 10, INT64: 20}
_WIDTHS: Final = list(_INTEGERS)
_SCALE_MIN: Final = 6


def is_integer(type_: SqlType) -> bool:
    return type_ in _INTEGERS


def is_numeric(type_: SqlType) -> bool:
    return type_ in _INTEGERS or type_ in (FLOAT, DOUBLE) or isinstance(type_, Decimal)


def is_flat(type_: SqlType) -> bool:
    """Whether values can be compared: all types except lists, maps and structs."""
    return isinstance(type_, FlatType) or type_ is Untyped.NULL


def has_map(type_: SqlType) -> bool:
    """Whether values have maps in them, which cannot be compared."""
    match type_:
        case Map():
            return True
        case List(element):
            return has_map(element)
        case Struct(members):
            return any(has_map(member) for _, member in members)
    return False


def common_type(types: Iterable[SqlType]) -> SqlType | None:
    """The type that values of all these types can be converted to without loss; None if there is no such type."""
    nothing: SqlType | None = Untyped.NULL
    return reduce(_common, types, nothing)


def _common(one: SqlType | None, other: SqlType) -> SqlType | None:
    if one is None or one == other or other is Untyped.NULL:
        return one
    if one is Untyped.NULL:
        return other
    if is_numeric(one) and is_numeric(other):
        return _common_number(one, other)
    times = {one, other}
    for time in (TIMESTAMP, TIMESTAMP_NTZ):
        if times == {DATE, time}:
            return time
    return None


def _common_number(one: SqlType, other: SqlType) -> SqlType | None:
    if is_integer(one) and is_integer(other):
        return max(one, other, key=_WIDTHS.index)
    if DOUBLE in (one, other) or FLOAT in (one, other):
        return DOUBLE
    one_decimal, other_decimal = as_decimal(one), as_decimal(other)
    scale = max(one_decimal.scale, other_decimal.scale)
    precision = (
        max(one_decimal.precision - one_decimal.scale, other_decimal.precision - other_decimal.scale) + scale
    )
    return Decimal(precision, scale) if precision <= DECIMAL_PRECISION_MAX else None


def as_decimal(type_: SqlType) -> Decimal:
    """The decimal that holds every value of a decimal or an integer type."""
    return type_ if isinstance(type_, Decimal) else Decimal(_INTEGERS[type_], 0)


def computed_type(operator: str, one: SqlType, other: SqlType) -> DataType:
    """The type of the result of + - * / % on two numbers, neither of them NULL."""
    if FLOAT == one == other and operator != "/":
        return FLOAT
    if DOUBLE in (one, other) or FLOAT in (one, other):
        return DOUBLE
    if is_integer(one) and is_integer(other):
        return DOUBLE if operator == "/" else max(one, other, key=_WIDTHS.index)  # type: ignore[return-value]
    return _decimal_result(operator, as_decimal(one), as_decimal(other))


def _decimal_result(operator: str, one: Decimal, other: Decimal) -> Decimal:
    """Spark's rules for decimals, including the adjustment of results with more than 38 digits."""
    whole = one.precision - one.scale, other.precision - other.scale
    scale = max(one.scale, other.scale)
    match operator:
        case "*":
            return adjusted(one.precision + other.precision + 1, one.scale + other.scale)
        case "/":
            scale = max(_SCALE_MIN, one.scale + other.precision + 1)
            return adjusted(whole[0] + other.scale + scale, scale)
        case "%":
            return adjusted(min(whole) + scale, scale)
    return adjusted(max(whole) + scale + 1, scale)


def adjusted(precision: int, scale: int) -> Decimal:
    """The decimal with these digits, or with fewer behind the point if these are too many."""
    if precision <= DECIMAL_PRECISION_MAX:
        return Decimal(precision, scale)
    new_scale = max(DECIMAL_PRECISION_MAX - (precision - scale), min(scale, _SCALE_MIN))
    return Decimal(DECIMAL_PRECISION_MAX, new_scale)


def castable(source: SqlType, target: DataType) -> bool:
    """Whether CAST supports the conversion."""
    if source in (target, Untyped.NULL):
        return True
    if not is_flat(source) or not is_flat(target):
        return False
    if STRING in (source, target):
        return True
    if is_numeric(source):
        return is_numeric(target) or target == BOOLEAN or (target == TIMESTAMP and is_integer(source))
    if source == BOOLEAN:
        return is_numeric(target)
    if source == TIMESTAMP and target == INT64:
        return True
    times = (DATE, TIMESTAMP, TIMESTAMP_NTZ)
    return source in times and target in times
