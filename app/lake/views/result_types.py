"""The types of what functions give, where they depend on what they were given: Spark's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from app.format.schema.types import DECIMAL_PRECISION_MAX, Decimal, List, Map
from app.lake.views.coercion import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    STRING,
    SqlType,
    Untyped,
    computed_type,
    is_integer,
)
from app.lake.views.values import Misfit, Value

# Of an average, on both sides of the point together and behind it.
_MORE_DIGITS: Final = 4


def type_of_first(arguments: Sequence[Value]) -> SqlType:
    return arguments[0].type


def type_of_last(arguments: Sequence[Value]) -> SqlType:
    return arguments[-1].type


def type_of_sum(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if isinstance(given, Decimal):
        return Decimal(min(given.precision + 10, DECIMAL_PRECISION_MAX), given.scale)
    return BIGINT if is_integer(given) else DOUBLE


def type_of_average(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if not isinstance(given, Decimal):
        return DOUBLE
    if given.precision + _MORE_DIGITS > DECIMAL_PRECISION_MAX:
        raise Misfit(f"CAST(… AS type) around it, with {DECIMAL_PRECISION_MAX - _MORE_DIGITS} digits at most")
    return Decimal(given.precision + _MORE_DIGITS, given.scale + _MORE_DIGITS)


def type_of_whole_part(arguments: Sequence[Value]) -> SqlType:
    """Of ceil and floor."""
    given = arguments[0].type
    if not isinstance(given, Decimal):
        return BIGINT
    return Decimal(given.precision - given.scale + 1, 0) if given.scale else given


def type_of_rounded(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if not isinstance(given, Decimal):
        return given
    digits = arguments[1].literal if len(arguments) > 1 else 0
    whole = given.precision - given.scale + 1
    if digits < 0:
        return Decimal(min(max(whole, 1 - digits), DECIMAL_PRECISION_MAX), 0)
    scale = min(given.scale, digits)
    return Decimal(min(whole + scale, DECIMAL_PRECISION_MAX), scale)


def type_of_computed(operator: str) -> Callable[[Sequence[Value]], SqlType]:
    def result(arguments: Sequence[Value]) -> SqlType:
        return computed_type(operator, arguments[0].type, arguments[1].type)

    return result


def type_of_element(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if isinstance(given, Map):
        if arguments[1].type != given.key:
            raise Misfit(f"a key of type {given.key}")
        return given.value
    assert isinstance(given, List)
    if not is_integer(arguments[1].type):
        raise Misfit("the number of an element, from 1")
    return given.element


def type_of_contained(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    assert isinstance(given, List)
    if arguments[1].type != given.element:
        raise Misfit(f"a value of type {given.element}")
    return BOOLEAN


def type_of_strings(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if given != List(STRING):
        raise Misfit("a list of strings")
    return STRING


def list_of_first(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    if isinstance(given, Untyped):
        raise Misfit("CAST(NULL AS type)")
    return List(given)


def list_of_keys(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    assert isinstance(given, Map)
    return List(given.key)


def list_of_values(arguments: Sequence[Value]) -> SqlType:
    given = arguments[0].type
    assert isinstance(given, Map)
    return List(given.value)
