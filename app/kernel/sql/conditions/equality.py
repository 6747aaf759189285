"""The text of a filter that selects the rows with given values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import pyarrow as pa

from app.kernel.format.schema.types import stored_type

KeyPart: TypeAlias = tuple[tuple[str, ...], pa.DataType, Any]
"""A column and then members of structs, the Arrow type of the column or member, and its value."""


def equality(parts: Iterable[KeyPart]) -> str:
    """A filter for the rows that have each of these values. There is one at least."""
    return " AND ".join(
        f"{'.'.join(map(_quoted, path))} = {_literal(kind, value)}" for path, kind, value in parts
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(kind: pa.DataType, value: Any) -> str:
    flat = stored_type(kind)
    if flat is None:
        raise TypeError(f"there is no literal of type {kind}")
    return flat.sql_literal(value)
