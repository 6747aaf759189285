"""The parameters of functions: the arguments that they accept, and their conversions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    List,
    Map,
    Timestamp,
)
from app.kernel.sql.queries.coercion import SqlType, Untyped, is_flat, is_integer, is_numeric
from app.kernel.sql.queries.values import Value


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function.

    `type_for`: the type to which an argument of a type is converted; None if it does not fit. `literal`: whether a
    literal fits, if the argument cannot be an expression.
    """

    expectation: str
    type_for: Callable[[SqlType], SqlType | None]
    literal: Callable[[Value], bool] | None = None


def _exactly(type_: SqlType) -> Callable[[SqlType], SqlType | None]:
    return lambda argument: type_ if argument in (type_, Untyped.NULL) else None


def _if(
    fits: Callable[[SqlType], bool], becomes: SqlType | None = None
) -> Callable[[SqlType], SqlType | None]:
    return lambda type_: (becomes or type_) if type_ is Untyped.NULL or fits(type_) else None


def _moment(type_: SqlType) -> SqlType | None:
    return type_ if isinstance(type_, Timestamp) else TIMESTAMP if type_ in (DATE, Untyped.NULL) else None


ANY: Final = Parameter("a value", lambda type_: None if type_ is Untyped.INTERVAL else type_)
FLAT: Final = Parameter("a value other than a list, map or struct", _if(is_flat))
TEXT: Final = Parameter("a string", _exactly(STRING))
BYTES: Final = Parameter("a string or binary", _if(lambda type_: type_ in (STRING, BINARY)))
TRUTH: Final = Parameter("a boolean", _exactly(BOOLEAN))
NUMBER: Final = Parameter("a number", _if(is_numeric))
REAL: Final = Parameter("a number", _if(is_numeric, DOUBLE))
WHOLE: Final = Parameter("an integer", _if(is_integer, INT32))
LONG: Final = Parameter("an integer", _if(is_integer, INT64))
DAY: Final = Parameter(
    "a date or a timestamp", _if(lambda type_: type_ == DATE or isinstance(type_, Timestamp), DATE)
)
MOMENT: Final = Parameter("a date or a timestamp", _moment)
INSTANT: Final = Parameter("a timestamp", _if(lambda type_: type_ in (TIMESTAMP, DATE), TIMESTAMP))
LIST: Final = Parameter("a list", lambda type_: type_ if isinstance(type_, List) else None)
MAP: Final = Parameter("a map", lambda type_: type_ if isinstance(type_, Map) else None)
LIST_OR_MAP: Final = Parameter(
    "a list or a map", lambda type_: type_ if isinstance(type_, List | Map) else None
)
TEXT_LITERAL: Final = Parameter("a 'string'", _exactly(STRING), lambda value: isinstance(value.literal, str))


def one_of(*words: str) -> Parameter:
    """A string literal out of these words."""
    alternatives = ", ".join(f"'{word}'" for word in words)
    return Parameter(
        alternatives,
        _exactly(STRING),
        lambda value: isinstance(value.literal, str) and value.literal.casefold() in words,
    )


def integer_literal(low: int, high: int) -> Parameter:
    """An integer literal within the bounds."""
    return Parameter(
        f"an integer from {low} to {high}",
        _if(is_integer, INT32),
        lambda value: isinstance(value.literal, int) and low <= value.literal <= high,
    )


def fraction_literal() -> Parameter:
    """A number literal from 0 to 1."""
    return Parameter(
        "a number from 0 to 1", _if(is_numeric, DOUBLE), lambda value: _is_fraction(value.literal)
    )


def _is_fraction(literal: object) -> bool:
    return isinstance(literal, int | float) and not isinstance(literal, bool) and 0 <= literal <= 1
