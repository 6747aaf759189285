"""Statistics of files as Delta has them: the number of rows, and the nulls and bounds of columns.

A column has both bounds and its number of nulls, or nothing. Times and numbers with a fraction have no bounds: readers
compare them after rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from app.kernel.delta.schemas import physical_name
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import DATE, STRING, FlatType, Integer

COLUMNS_MAX: Final = 32
"""How many columns have statistics: the first of the schema."""


@lru_cache(maxsize=256)
def _columns(schema: Schema, by_id: bool) -> tuple[tuple[str, str], ...]:
    """The ids of the columns that have bounds, as statistics name them, and their names in Delta's form."""
    names = []
    for field in schema.fields[:COLUMNS_MAX]:
        kind = field.data_type()
        if isinstance(kind, FlatType) and (isinstance(kind, Integer) or kind in (STRING, DATE)):
            names.append((str(field.id), physical_name(field) if by_id else field.name))
    return tuple(names)


def statistics_text(
    schema: Schema, row_count: int, columns: Mapping[str, ColumnStatistics], *, by_id: bool
) -> str:
    """The statistics as the text that actions have.

    `row_count`: of all rows of the file, with those that are deleted. `columns`: by field id.
    """
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for number, name in _columns(schema, by_id):
        column = columns.get(number)
        if (
            column is not None
            and column.null_count is not None
            and column.minimum is not None
            and column.maximum is not None
        ):
            lows[name], highs[name], nulls[name] = column.minimum, column.maximum, column.null_count
    members: dict[str, Any] = {"numRecords": row_count}
    if lows:
        members |= {"minValues": lows, "maxValues": highs, "nullCount": nulls}
    return msgspec.json.encode(members).decode()
