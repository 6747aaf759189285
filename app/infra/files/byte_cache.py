"""Caches that are bounded by bytes, however many small entries they have.

What is read of a small file takes many times the bytes of its values in memory: each column of a table, and each column
in a footer, has objects of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Final, Generic, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

# Measured with tables and footers of ten columns; strings have more buffers than numbers.
_COLUMN_BYTES: Final = 2_048
_FOOTER_FACTOR: Final = 8
# A key with a path, and its place in the cache.
_ENTRY_BYTES: Final = 512

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ByteCache(Generic[_Key, _Value]):
    """At most `bytes_max` bytes of values; the least recently used are evicted. Safe to use from any thread.

    Files are written once, so what is read of them never goes stale.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._kept: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """The bytes of all entries, as they were counted."""
        return self._bytes

    def get(self, key: _Key) -> _Value | None:
        """The value, or None."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def take(self, key: _Key) -> _Value | None:
        """The value, or None. Removes it from the cache."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._bytes -= found[1]
            return found[0]

    def put(self, key: _Key, value: _Value, value_bytes: int) -> None:
        """Caches the value, unless it is larger than all of the cache."""
        size = value_bytes + _ENTRY_BYTES
        with self._lock:
            replaced = self._kept.pop(key, None)
            self._bytes -= 0 if replaced is None else replaced[1]
            if size > self._bytes_max:
                return
            self._kept[key] = value, size
            self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, dropped) = self._kept.popitem(last=False)
                self._bytes -= dropped


def table_bytes(table: pa.Table) -> int:
    """The memory of a table: its buffers, and the objects of its columns."""
    return int(table.get_total_buffer_size()) + _COLUMN_BYTES * table.num_columns


def footer_bytes(metadata: pq.FileMetaData) -> int:
    """The memory of a footer."""
    return int(metadata.serialized_size) * _FOOTER_FACTOR
