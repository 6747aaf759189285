"""The text of a filter that selects the rows with given values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import TypeAlias

Flat: TypeAlias = bool | int | str | bytes | date | datetime | Decimal
"""A value of a column of a record key."""


def equality(values: Mapping[tuple[str, ...], Flat]) -> str:
    """A filter for the rows that have each of these values. There is one at least.

    `values`: by path, a column and then members of structs.
    """
    return " AND ".join(
        f"{'.'.join(map(_quoted, path))} = {_literal(value)}" for path, value in values.items()
    )


def _quoted(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def _literal(value: Flat) -> str:
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int():
            return str(value)
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            text = value.isoformat()
            return f"TIMESTAMP '{text.replace('+00:00', 'Z')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
        case Decimal():
            return f"'{value}'"
        case str():
            escaped = value.replace("'", "''")
            return f"'{escaped}'"
