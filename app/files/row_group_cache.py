"""Decoded row groups that a slice ended within, cached for a reader that continues there.

A reader that pages through a feed would otherwise decode nearly every row group twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

_Key = tuple[str, int, tuple[str, ...]]


class RowGroupCache:
    """At most `bytes_max` bytes of decoded row groups, by path, number and columns; safe to use from any thread.

    Files are written once, so entries never go stale.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[pa.Table, int]] = OrderedDict()
        self._bytes = 0

    def take(self, key: _Key) -> pa.Table | None:
        """The cached row group, or None. Removes it from the cache: most readers pass a place once."""
        with self._lock:
            table, size = self._kept.pop(key, (None, 0))
            self._bytes -= size
            return table

    def put(self, key: _Key, table: pa.Table) -> None:
        """Caches the row group and evicts the oldest entries; a group above the limit is not cached."""
        size = table.get_total_buffer_size()
        with self._lock:
            _, replaced = self._kept.pop(key, (None, 0))
            self._bytes -= replaced
            if size > self._bytes_max:
                return
            self._kept[key] = table, size
            self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped
