"""Row groups that a slice ended within, kept decoded for the reader who goes on from there.

Whoever follows a feed page by page would otherwise decode nearly every row group twice.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import pyarrow as pa

_Key = tuple[str, int, tuple[str, ...]]


class RowGroupCache:
    """At most `bytes_max` bytes of decoded row groups, by path, number and columns; safe to use from any thread.

    Files are written once, so what is kept never goes stale.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[pa.Table, int]] = OrderedDict()
        self._bytes = 0

    def take(self, key: _Key) -> pa.Table | None:
        """The row group if it is kept. It is kept no longer then: most readers pass a place once."""
        with self._lock:
            table, size = self._kept.pop(key, (None, 0))
            self._bytes -= size
            return table

    def put(self, key: _Key, table: pa.Table) -> None:
        """Keeps the row group, in place of those kept longest; one larger than the bound is not kept."""
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
