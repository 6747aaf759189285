"""Which dataset's writes this process runs now. Wake-ups that come meanwhile are remembered, not queued up."""

from __future__ import annotations

import threading
from collections import Counter

from app.services.run_writes import RunWrites

_Key = tuple[str, str]


class Runner:
    """Runs the waiting writes of a dataset until there are none, in the thread that asks.

    What may run is decided by the claim in Postgres; this only keeps the threads of one process from asking for the
    same dataset over and over.
    """

    def __init__(
        self, run_writes: RunWrites, *, dataset_writers_max: int, stopping: threading.Event | None = None
    ) -> None:
        """`stopping`: once it is set, from wherever, no group is started any more."""
        self._run_writes = run_writes
        self._dataset_writers_max = dataset_writers_max
        self._lock = threading.RLock()
        self._running: Counter[_Key] = Counter()
        self._woken: set[_Key] = set()
        self._idle = threading.Condition(self._lock)
        self._stopping = stopping or threading.Event()

    def run(self, tenant_id: str, dataset_id: str) -> None:
        """Runs until no write of the dataset can be claimed. Returns at once if other threads are at it already."""
        key = (tenant_id, dataset_id)
        with self._lock:
            self._woken.add(key)
            if self._stopping.is_set() or self._running[key] >= self._dataset_writers_max:
                return
            self._running[key] += 1
        try:
            while self._next(key):
                while not self._stopping.is_set() and self._run_writes.run(tenant_id, dataset_id):
                    pass
        except BaseException:
            with self._lock:
                self._leave(key)
            raise

    def _next(self, key: _Key) -> bool:
        """Takes the latest wake-up; without one, leaves under the same lock, so that none falls in between."""
        with self._lock:
            if key in self._woken and not self._stopping.is_set():
                self._woken.discard(key)
                return True
            self._leave(key)
            return False

    def _leave(self, key: _Key) -> None:
        self._running[key] -= 1
        self._idle.notify_all()

    def stop(self, timeout_seconds: float) -> bool:
        """Lets running groups end and starts no others; False if some still run after the time."""
        with self._lock:
            self._stopping.set()
            return self._idle.wait_for(lambda: not any(self._running.values()), timeout_seconds)
