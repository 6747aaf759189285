"""Runs the work of datasets in this process. Notifications during a run are remembered once, not queued."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

_log = logging.getLogger(__name__)
_Key = tuple[str, str]


class RunsOne(Protocol):
    """A use case that is run for one dataset repeatedly, until the dataset has no more work."""

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Does one unit of work; False if there was none."""
        ...


class Runner:
    """Runs a use case for the datasets that have work, on its own threads.

    The claim in Postgres decides what may run. The runner only prevents that the threads of one process claim the same
    dataset repeatedly.
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
        """At most `per_dataset_max` threads work on one dataset. Once `stopping` is set, no work is started."""
        self._use_case = use_case
        self._per_dataset_max = per_dataset_max
        self._lock = threading.RLock()
        self._running: Counter[_Key] = Counter()
        self._woken: set[_Key] = set()
        self._idle = threading.Condition(self._lock)
        self._stopping = stopping or threading.Event()
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    def wake(self, tenant_id: str, dataset_id: str) -> None:
        """Notes that the dataset may have work. Callable from any thread; returns at once."""
        key = (tenant_id, dataset_id)
        with self._lock:
            self._woken.add(key)
            if self._stopping.is_set() or self._running[key] >= self._per_dataset_max:
                return
            self._running[key] += 1
            self._pool.submit(self._work, key)

    def _work(self, key: _Key) -> None:
        """Runs until the dataset has no more work."""
        try:
            while self._next(key):
                while not self._stopping.is_set() and self._use_case.run(*key):
                    pass
        except Exception:
            _log.exception("the work of dataset %s failed; it will be retried", key[1])
            with self._lock:
                self._leave(key)
        except BaseException:
            with self._lock:
                self._leave(key)
            raise

    def _next(self, key: _Key) -> bool:
        """Consumes the latest notification. Without one, the thread ends under the same lock, so that none is lost."""
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
        """Finishes running work and starts no more. False if some work still runs after the timeout."""
        with self._lock:
            self._stopping.set()
            ended = self._idle.wait_for(lambda: not any(self._running.values()), timeout_seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return ended
