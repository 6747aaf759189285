"""Caches that are bounded by bytes, however many small entries they have."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, Generic, TypeVar

# A key with a path, and its place in the cache.
_ENTRY_BYTES: Final = 512

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class ByteCache(Generic[_Key, _Value]):
    """At most `bytes_max` bytes of values; the least recently used are evicted. Safe to use from any thread.

    Nothing goes stale here: files are written once, and other keys have the version of what they are of. Files on a
    disk are cached by HotFolder (app/infra/files/lookups/hot_folder.py), which processes share.
    """

    def __init__(
        self,
        bytes_max: int,
        *,
        keeps_last: bool = False,
        on_drop: Callable[[_Value], object] = lambda _: None,
    ) -> None:
        """`keeps_last`: the last value is cached even if it is larger than the cache, and then alone.

        `on_drop`: called with each value that is evicted, replaced or too large. It calls no method of the cache.
        """
        self._bytes_max = bytes_max
        self._keeps_last = keeps_last
        self._on_drop = on_drop
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, tuple[_Value, int]] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The bytes of all entries, as they were counted."""
        return self._bytes

    def get(self, key: _Key) -> _Value | None:
        """The value, or None."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            return entry[0]

    def take(self, key: _Key) -> _Value | None:
        """The value, or None. Removes it from the cache."""
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is None:
                return None
            self._bytes -= entry[1]
            return entry[0]

    def put(self, key: _Key, value: _Value, value_bytes: int) -> None:
        """Caches the value, unless it is larger than all of the cache."""
        size = value_bytes + _ENTRY_BYTES
        with self._lock:
            if key in self._entries:
                self._drop(key)
            if size > self._bytes_max and not self._keeps_last:
                self._on_drop(value)
                return
            self._entries[key] = value, size
            self._bytes += size
            while self._bytes > self._bytes_max and (len(self._entries) > 1 or not self._keeps_last):
                self._drop(next(iter(self._entries)))

    def _drop(self, key: _Key) -> None:
        value, size = self._entries.pop(key)
        self._bytes -= size
        self._on_drop(value)
