"""Rows as request bodies."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Iterable, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def ndjson(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object per line. Raises ValueError for NaN and infinity, TypeError for values without a JSON form."""
    return "".join(f"{row_json(row)}\n" for row in rows).encode()


def rows_json(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A JSON array. Raises as `ndjson` does."""
    return f"[{','.join(row_json(row) for row in rows)}]".encode()


def row_json(row: Mapping[str, Any]) -> str:
    """A JSON object. Raises as `ndjson` does."""
    # The standard library's encoder, because the faster ones silently write NaN as null.
    return json.dumps(row, allow_nan=False, ensure_ascii=False, separators=(",", ":"), default=_plain)


def value_text(value: Any) -> str:
    """A value as the path of a key has it: its JSON form, of texts without the quotes. Raises as `ndjson` does."""
    return value if isinstance(value, str) else row_json({"": value})[4:-1].strip('"')


def _plain(value: Any) -> str:
    match value:
        case datetime() | date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case uuid.UUID():
            return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form; send Arrow instead")
