"""Statistics of files as Delta has them: the number of rows, and the nulls and bounds of columns.

A column has both bounds and its number of nulls, or nothing. Times and numbers with a fraction have no bounds: readers
compare them after rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.kernel.delta.schemas import physical_name
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import DATE, STRING, DataType, FlatType, Integer

COLUMNS_MAX: Final = 32
"""How many columns have statistics: the first of the schema."""
_encode: Final = msgspec.json.Encoder().encode


class StatisticsTexts:
    """Writes the statistics of the files of a table."""

    def __init__(self, schema: Schema, *, by_id: bool) -> None:
        """`by_id`: whether columns have their names of column mapping by id."""
        self._columns = [
            (str(field.id), physical_name(field) if by_id else field.name)
            for field in schema.fields[:COLUMNS_MAX]
            if _has_bounds(field.data_type())
        ]

    def text(self, row_count: int, columns: Mapping[str, ColumnStatistics]) -> str:
        """The statistics of a file as the text that actions have.

        `row_count`: of all rows of the file, with those that are deleted. `columns`: by field id.
        """
        lows: dict[str, Any] = {}
        highs: dict[str, Any] = {}
        nulls: dict[str, int] = {}
        for number, name in self._columns:
            column = columns.get(number)
            if column is None:
                continue
            low, high, null_count = column.minimum, column.maximum, column.null_count
            if low is not None and high is not None and null_count is not None:
                lows[name], highs[name], nulls[name] = low, high, null_count
        members: dict[str, Any] = {"numRecords": row_count}
        if lows:
            members |= {"minValues": lows, "maxValues": highs, "nullCount": nulls}
        return _encode(members).decode()


def _has_bounds(kind: DataType) -> bool:
    return isinstance(kind, FlatType) and (isinstance(kind, Integer) or kind in (STRING, DATE))
