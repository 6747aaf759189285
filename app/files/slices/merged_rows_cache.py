"""Rows of file groups whose logs were merged in, kept for the reader who goes on from there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedRows:
    """Rows of a merged group from row `first` on; `ended` if the last row of the group is among them."""

    first: int
    rows: pa.Table
    ended: bool

    def has(self, first_row: int, rows: int) -> bool:
        """Whether all that there is of rows [first_row, first_row + rows) is in the stretch."""
        return self.first <= first_row and (self.ended or first_row + rows <= self.first + self.rows.num_rows)

    def rows_from(self, first_row: int, rows: int) -> pa.Table:
        """Rows [first_row, first_row + rows) of the group."""
        return self.rows.slice(first_row - self.first, rows)


class MergedRowsCache:
    """One stretch of each group, at most `bytes_max` bytes together; safe to use from any thread.

    What is kept under a key never changes, so it never goes stale.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[CachedRows, int]] = OrderedDict()
        self._bytes = 0

    def find(self, key: str, first_row: int, rows: int) -> CachedRows | None:
        """The stretch of the group, if it has these rows."""
        with self._lock:
            cached, _ = self._kept.get(key, (None, 0))
            if cached is None or not cached.has(first_row, rows):
                return None
            self._kept.move_to_end(key)
            return cached

    def put(self, key: str, cached: CachedRows) -> None:
        """Keeps the stretch, in place of the group's last one and of those used least recently."""
        size = cached.rows.get_total_buffer_size()
        with self._lock:
            _, replaced = self._kept.pop(key, (None, 0))
            self._bytes -= replaced
            self._kept[key] = cached, size
            self._bytes += size
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped
