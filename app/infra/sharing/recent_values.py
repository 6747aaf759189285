"""Values that hold for a short time, whatever changes meanwhile."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from app.infra.sharing.byte_cache import ByteCache

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class RecentValues(Generic[_Key, _Value]):
    """Values of the last `seconds`, in a bounded memory. Belongs to the event loop.

    What a value holds, such as an open file, is let go of when its time has passed, also if nothing reads it.
    """

    def __init__(
        self, seconds: float, bytes_max: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds: Final = seconds
        self._clock = clock
        self._cache = ByteCache[_Key, tuple[_Value, float]](bytes_max)
        # When entries end, the first to end first.
        self._ends: deque[tuple[float, _Key]] = deque()

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, key: _Key) -> _Value | None:
        """The value, or None."""
        entry = self._cache.get(key)
        return None if entry is None or entry[1] <= self._clock() else entry[0]

    def put(self, key: _Key, value: _Value, value_bytes: int) -> None:
        """Keeps the value from now on for its time, unless it is larger than all of the memory."""
        end = self._clock() + self._seconds
        self._cache.put(key, (value, end), value_bytes)
        if not self._ends:
            self._sweep_in(self._seconds)
        self._ends.append((end, key))

    def drop(self, key: _Key) -> None:
        """Removes the value."""
        self._cache.take(key)

    def sweep(self) -> None:
        """Removes what has ended. The event loop calls it."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, key = self._ends.popleft()
            entry = self._cache.get(key)
            # One that was put again meanwhile ends later.
            if entry is not None and entry[1] <= now:
                self._cache.take(key)
        if self._ends:
            self._sweep_in(self._ends[0][0] - now)

    def _sweep_in(self, seconds: float) -> None:
        asyncio.get_running_loop().call_later(seconds, self.sweep)
