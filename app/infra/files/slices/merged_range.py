"""Ranges of rows of file groups with merged logs, cached for a reader that continues there."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, kw_only=True, slots=True)
class MergedRange:
    """Rows of a merged group from row `first` on; `at_end` if they include the last row of the group."""

    first: int
    rows: pa.Table
    at_end: bool

    def has(self, first_row: int, rows: int, bytes_max: int) -> bool:
        """Whether the row range includes all existing rows of [first_row, first_row + rows), or `bytes_max` of them."""
        end = self.first + self.rows.num_rows
        if self.first > first_row:
            return False
        if self.at_end or first_row + rows <= end:
            return True
        return first_row < end and bool(self.rows.slice(first_row - self.first).nbytes >= bytes_max)

    def rows_from(self, first_row: int, rows: int) -> pa.Table:
        """Rows [first_row, first_row + rows) of the group."""
        return self.rows.slice(first_row - self.first, rows)
