"""Spark's types for the results of functions whose type depends on the arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.kernel.format.schema.types import (
    BOOLEAN,
    DECIMAL_PRECISION_MAX,
    DOUBLE,
    INT64,
    STRING,
    Decimal,
    List,
    Map,
)
from app.kernel.sql.queries.coercion import SqlType, Untyped, computed_type, is_integer
from app.kernel.sql.queries.values import Misfit, Value

# The additional digits of an average: in total, and behind the point.
_MORE_DIGITS: Final = 4


def type_of_first(arguments: Sequence[Value]) -> SqlType:
    return arguments[0].type


def type_of_last(arguments: Sequence[Value]) -> SqlType:
    return arguments[-1].type


def type_of_sum(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision + 10, DECIMAL_PRECISION_MAX), type_.scale)
    return INT64 if is_integer(type_) else DOUBLE


def type_of_average(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if not isinstance(type_, Decimal):
        return DOUBLE
    if type_.precision + _MORE_DIGITS > DECIMAL_PRECISION_MAX:
        raise Misfit(f"CAST(… AS type) around it, with {DECIMAL_PRECISION_MAX - _MORE_DIGITS} digits at most")
    return Decimal(type_.precision + _MORE_DIGITS, type_.scale + _MORE_DIGITS)


def type_of_whole_part(arguments: Sequence[Value]) -> SqlType:
    """The type of ceil and floor."""
    type_ = arguments[0].type
    if not isinstance(type_, Decimal):
        return INT64
    return Decimal(type_.precision - type_.scale + 1, 0) if type_.scale else type_


def type_of_rounded(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if not isinstance(type_, Decimal):
        return type_
    digits = arguments[1].literal if len(arguments) > 1 else 0
    whole = type_.precision - type_.scale + 1
    if digits < 0:
        return Decimal(min(max(whole, 1 - digits), DECIMAL_PRECISION_MAX), 0)
    scale = min(type_.scale, digits)
    return Decimal(min(whole + scale, DECIMAL_PRECISION_MAX), scale)


def type_of_computed(operator: str) -> Callable[[Sequence[Value]], SqlType]:
    def result(arguments: Sequence[Value]) -> SqlType:
        return computed_type(operator, arguments[0].type, arguments[1].type)

    return result


def type_of_element(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if isinstance(type_, Map):
        if arguments[1].type != type_.key:
            raise Misfit(f"a key of type {type_.key}")
        return type_.value
    assert isinstance(type_, List)
    if not is_integer(arguments[1].type):
        raise Misfit("the number of an element, from 1")
    return type_.element


def type_of_contained(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    assert isinstance(type_, List)
    if arguments[1].type != type_.element:
        raise Misfit(f"a value of type {type_.element}")
    return BOOLEAN


def type_of_strings(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if type_ != List(STRING):
        raise Misfit("a list of strings")
    return STRING


def list_of_first(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    if isinstance(type_, Untyped):
        raise Misfit("CAST(NULL AS type)")
    return List(type_)


def list_of_keys(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    assert isinstance(type_, Map)
    return List(type_.key)


def list_of_values(arguments: Sequence[Value]) -> SqlType:
    type_ = arguments[0].type
    assert isinstance(type_, Map)
    return List(type_.value)
