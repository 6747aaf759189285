"""Filters of Spark as conditions of the service."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any, Final

from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringContains,
    StringEndsWith,
    StringStartsWith,
)

_COMPARISONS: Final[dict[type[Filter], str]] = {
    EqualTo: "=",
    GreaterThan: ">",
    GreaterThanOrEqual: ">=",
    LessThan: "<",
    LessThanOrEqual: "<=",
}
_PATTERNS: Final[dict[type[Filter], str]] = {
    StringStartsWith: "{}%",
    StringEndsWith: "%{}",
    StringContains: "%{}%",
}
# The limits of the service, which has 10,000 characters for the whole condition.
_CONDITION_MAX: Final = 9_000
_PATTERN_MAX: Final = 900


def split(filters: Iterable[Filter]) -> tuple[list[str], list[Filter]]:
    """The conditions of the filters that the service evaluates as Spark does, and the other filters."""
    conditions: list[str] = []
    others: list[Filter] = []
    room = _CONDITION_MAX
    for each in filters:
        text = condition(each)
        if text is None or len(text) + 8 > room:
            others.append(each)
        else:
            conditions.append(text)
            room -= len(text) + 8
    return conditions, others


def conjunction(conditions: Sequence[str]) -> str | None:
    """All conditions as one; None without any."""
    return " AND ".join(f"({each})" for each in conditions) if conditions else None


def condition(each: Filter) -> str | None:
    """The condition that is true for the same rows, and unknown for the same; None if there is none."""
    match each:
        case Not(child=EqualNullSafe(attribute=path, value=value)):
            # Without a value, `<=>` is false where `=` is unknown.
            inner = condition(EqualTo(path, value))
            return None if inner is None else f"{_column(path)} IS NULL OR NOT ({inner})"
        case Not(child=child):
            inner = condition(child)
            return None if inner is None else f"NOT ({inner})"
        case IsNull(attribute=path):
            return f"{_column(path)} IS NULL"
        case IsNotNull(attribute=path):
            return f"{_column(path)} IS NOT NULL"
        case EqualNullSafe(attribute=path, value=value):
            return condition(EqualTo(path, value))
        case In(attribute=path, value=values):
            literals = [_literal(value) for value in values]
            if not literals or None in literals:
                return None
            return f"{_column(path)} IN ({', '.join(text for text in literals if text is not None)})"
    return _comparison(each)


def _comparison(each: Filter) -> str | None:
    kind = type(each)
    path: tuple[str, ...] = getattr(each, "attribute", ())
    value: Any = getattr(each, "value", None)
    if kind in _COMPARISONS:
        literal = _literal(value)
        return None if literal is None else f"{_column(path)} {_COMPARISONS[kind]} {literal}"
    if kind in _PATTERNS and isinstance(value, str):
        escaped = value.replace("!", "!!").replace("%", "!%").replace("_", "!_")
        literal = _literal(_PATTERNS[kind].format(escaped))
        if literal is not None and len(literal) <= _PATTERN_MAX:
            return f"{_column(path)} LIKE {literal} ESCAPE '!'"
    return None


def _column(path: Sequence[str]) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in path)


def _literal(value: Any) -> str | None:
    """The literal of a value; None for values that have none."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else None
        case Decimal():
            return format(value, "f") if value.is_finite() else None
        case str():
            return None if "\0" in value else "'" + value.replace("'", "''") + "'"
        case bytes() | bytearray():
            return f"X'{bytes(value).hex()}'"
        case datetime():
            zoned = value.tzinfo is not None
            plain = value.astimezone(timezone.utc).replace(tzinfo=None) if zoned else value
            return f"TIMESTAMP '{plain.isoformat()}{'Z' if zoned else ''}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return None
