"""Which datasets this process works on now. Wake-ups that come meanwhile are remembered, not queued up."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

_log = logging.getLogger(__name__)
_Key = tuple[str, str]


class RunsOne(Protocol):
    """A use case that is run for one dataset again and again, until there is nothing left to do for it."""

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Does one thing; False if there was none to do."""
        ...


class Runner:
    """Runs a use case for the datasets that have work for it, on threads of its own.

    What may run is decided by the claim in Postgres; this only keeps the threads of one process from asking for the
    same dataset over and over.
    """

    def __init__(
        self,
        use_case: RunsOne,
        *,
        name: str,
        threads: int,
        per_dataset_max: int,
        stopping: threading.Event | None = None,
    ) -> None:
        """At most `per_dataset_max` threads work on one dataset. `stopping`: once it is set, nothing is started."""
        self._use_case = use_case
        self._per_dataset_max = per_dataset_max
        self._lock = threading.RLock()
        self._running: Counter[_Key] = Counter()
        self._woken: set[_Key] = set()
        self._idle = threading.Condition(self._lock)
        self._stopping = stopping or threading.Event()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def wake(self, tenant_id: str, dataset_id: str) -> None:
        """Says that the dataset may have work. From any thread; returns at once."""
        key = (tenant_id, dataset_id)
        with self._lock:
            self._woken.add(key)
            if self._stopping.is_set() or self._running[key] >= self._per_dataset_max:
                return
            self._running[key] += 1
            self._pool.submit(self._work, key)

    def _work(self, key: _Key) -> None:
        """Runs until there is nothing to do for the dataset."""
        try:
            while self._next(key):
                while not self._stopping.is_set() and self._use_case.run(*key):
                    pass
        except Exception:
            _log.exception("the work of dataset %s failed; it will be tried again", key[1])
            with self._lock:
                self._leave(key)
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
        if not self._running[key]:
            del self._running[key]
        self._idle.notify_all()

    def stop(self, timeout_seconds: float) -> bool:
        """Lets what runs end and starts nothing else; False if something still runs after the time."""
        with self._lock:
            self._stopping.set()
            ended = self._idle.wait_for(lambda: not any(self._running.values()), timeout_seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return ended
