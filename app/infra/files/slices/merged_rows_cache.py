"""Rows of file groups with merged logs, cached for a reader that continues there."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa

from app.infra.files.byte_cache import table_bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedRows:
    """Rows of a merged group from row `first` on; `ended` if they include the last row of the group."""

    first: int
    rows: pa.Table
    ended: bool

    def has(self, first_row: int, rows: int, bytes_max: int) -> bool:
        """Whether the row range includes all existing rows of [first_row, first_row + rows), or `bytes_max` of them."""
        end = self.first + self.rows.num_rows
        if self.first > first_row:
            return False
        if self.ended or first_row + rows <= end:
            return True
        return first_row < end and bool(self.rows.slice(first_row - self.first).nbytes >= bytes_max)

    def rows_from(self, first_row: int, rows: int) -> pa.Table:
        """Rows [first_row, first_row + rows) of the group."""
        return self.rows.slice(first_row - self.first, rows)


class MergedRowsCache:
    """One row range of each group, at most `bytes_max` bytes together; safe to use from any thread.

    The rows of a key never change, so entries never go stale.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[CachedRows, int]] = OrderedDict()
        self._bytes = 0

    def find(self, key: str, first_row: int, rows: int, bytes_max: int) -> CachedRows | None:
        """The row range of the group, if it includes these rows, or `bytes_max` of them."""
        with self._lock:
            cached, _ = self._kept.get(key, (None, 0))
            if cached is None or not cached.has(first_row, rows, bytes_max):
                return None
            self._kept.move_to_end(key)
            return cached

    def put(self, key: str, cached: CachedRows) -> None:
        """Caches the row range. Replaces the group's last one and evicts the least recently used ones."""
        size = table_bytes(cached.rows)
        with self._lock:
            _, replaced = self._kept.pop(key, (None, 0))
            self._bytes -= replaced
            self._kept[key] = cached, size
            self._bytes += size
            while self._bytes > self._bytes_max and len(self._kept) > 1:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped
