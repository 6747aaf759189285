"""Literals of a view as values, in the engine's SQL."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
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
    TIMESTAMP_NTZ,
    Decimal,
)
from app.kernel.sql.queries.coercion import Untyped
from app.kernel.sql.queries.relation_types import text_literal
from app.kernel.sql.queries.values import Binding, Value
from app.kernel.sql.syntax import Literal, Null, Number, Text, Truth, TypedText

_DECIMAL_DIGITS: Final = 38


def literal_value(node: Literal, binding: Binding) -> Value:
    """The value of a literal. Raises InvalidView."""
    match node:
        case Null():
            return Value(node.at, "NULL", Untyped.NULL, nullable=True)
        case Truth():
            return Value(
                node.at, "TRUE" if node.value else "FALSE", BOOLEAN, nullable=False, literal=node.value
            )
        case Text():
            return Value(node.at, text_literal(node.value), STRING, nullable=False, literal=node.value)
        case Number():
            return _number(node, binding)
        case TypedText():
            return _typed(node, binding)


def _number(node: Number, binding: Binding) -> Value:
    text = node.text
    if "e" in text.lower():
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise binding.at(node.at, "this number is out of range", "a double")
        return Value(node.at, f"{number!r}D", DOUBLE, nullable=False, literal=number)
    whole, _, fraction = text.partition(".")
    whole = whole.lstrip("0")
    if len(whole) + len(fraction) > _DECIMAL_DIGITS:
        raise binding.at(node.at, "this number has too many digits", f"at most {_DECIMAL_DIGITS}")
    if "." in text and fraction:
        type_ = Decimal(max(len(whole) + len(fraction), 1), len(fraction))
        return Value(node.at, f"{whole or '0'}.{fraction}BD", type_, nullable=False, literal=float(text))
    number = int(whole or "0")
    if number < 2**31:
        return Value(node.at, str(number), INT32, nullable=False, literal=number)
    if number < 2**63:
        return Value(node.at, f"{number}L", INT64, nullable=False, literal=number)
    return Value(node.at, f"{number}BD", Decimal(len(whole), 0), nullable=False)


def _typed(node: TypedText, binding: Binding) -> Value:
    match node.kind:
        case "DATE":
            if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", node.text) or not _reads(
                dt.date.fromisoformat, node.text
            ):
                raise binding.at(node.at, "this is not a date", "DATE 'YYYY-MM-DD'")
            return Value(node.at, f"DATE '{node.text}'", DATE, nullable=False)
        case "X":
            if not re.fullmatch(r"(?:[0-9A-Fa-f]{2})*", node.text):
                raise binding.at(
                    node.at, "these are not bytes", "X'00FF': two hexadecimal digits for each byte"
                )
            return Value(node.at, f"X'{node.text}'", BINARY, nullable=False)
    has_zone = node.kind == "TIMESTAMP"
    moment = _moment(node.text)
    if moment is None or (moment.tzinfo is not None and not has_zone):
        expectation = (
            "TIMESTAMP 'YYYY-MM-DDThh:mm:ssZ'" if has_zone else "TIMESTAMP_NTZ 'YYYY-MM-DDThh:mm:ss'"
        )
        raise binding.at(node.at, "this is not a time of that type", expectation)
    if moment.tzinfo is not None:
        moment = moment.astimezone(dt.UTC).replace(tzinfo=None)
    text = moment.isoformat(" ", "microseconds")
    if has_zone:
        return Value(node.at, f"TIMESTAMP '{text} UTC'", TIMESTAMP, nullable=False)
    return Value(node.at, f"TIMESTAMP_NTZ '{text}'", TIMESTAMP_NTZ, nullable=False)


def _reads(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _moment(text: str) -> dt.datetime | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?", text):
        return None
    try:
        return dt.datetime.fromisoformat(text)
    except ValueError:
        return None
