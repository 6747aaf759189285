"""Runs the work of datasets in this process, one piece after another, in the order of a fair queue."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

from app.infra.logs import log_context
from workers.jobs.fair_queue import FairQueue, Turn

_log = logging.getLogger(__name__)


class RunsOne(Protocol):
    """A use case that is run for one dataset repeatedly, until the dataset has no more work."""

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Does one unit of work; False if no more is known to wait."""
        ...


def equal_weight(_tenant_id: str) -> float:
    """The weight of a tenant where all have the same."""
    return 1.0


def ids_only(tenant_id: str, dataset_id: str) -> Mapping[str, str]:
    """The facts of lines of the log about work for a dataset."""
    return {"tenant": tenant_id, "dataset": dataset_id}


class Runner:
    """Runs a use case for the datasets that have work, on its own threads.

    A thread takes the next dataset from a fair queue, runs one unit of its work, and puts it back if there may be more.
    So no dataset keeps a thread, and no tenant's queue is before another's. The claim in Postgres decides what may run.
    """

    def __init__(
        self,
        use_case: RunsOne,
        *,
        name: str,
        threads: int,
        per_dataset_max: int,
        spare_threads: int = 1,
        weight: Callable[[str], float] = equal_weight,
        facts_of: Callable[[str, str], Mapping[str, str]] = ids_only,
        stopping: threading.Event | None = None,
    ) -> None:
        """One tenant has at most `threads`; there are more, so that long work of a tenant never holds all of them.

        At most `per_dataset_max` threads work on one dataset. `weight`: the share of a tenant, above zero. `facts_of`:
        what lines of the log say of a tenant and a dataset. Once `stopping` is set, no work is started.
        """
        self._use_case = use_case
        self._facts_of = facts_of
        self._threads = threads + spare_threads
        self._queue = FairQueue(weight=weight, per_dataset_max=per_dataset_max, per_tenant_max=threads)
        self._lock = threading.RLock()
        self._working = 0
        self._idle_since = time.monotonic()
        self._idle = threading.Condition(self._lock)
        self._stopping = stopping or threading.Event()
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix=name)

    def wake(self, tenant_id: str, dataset_id: str) -> None:
        """Notes that the dataset may have work. Callable from any thread; returns at once.

        Without room in the queue nothing happens: the poll calls again.
        """
        with self._lock:
            if self._stopping.is_set():
                return
            self._queue.push(tenant_id, dataset_id)
            if self._working < self._threads and len(self._queue):
                self._working += 1
                self._pool.submit(self._work)

    def _work(self) -> None:
        """Takes turns until no dataset waits."""
        try:
            while (turn := self._next()) is not None:
                self._run(turn)
        except BaseException:
            with self._lock:
                self._leave()
            raise

    def _next(self) -> Turn | None:
        """The next turn. Without one the thread ends under the same lock, so that no notification is lost."""
        with self._lock:
            turn = None if self._stopping.is_set() else self._queue.pick(time.monotonic())
            if turn is None:
                self._leave()
            return turn

    def _run(self, turn: Turn) -> None:
        """Runs one unit of work."""
        has_work = False
        with log_context(**self._facts_of(turn.tenant_id, turn.dataset_id)):
            try:
                has_work = self._use_case.run(turn.tenant_id, turn.dataset_id)
            except Exception:
                _log.exception("the work of the dataset failed; it will be retried")
            finally:
                with self._lock:
                    self._queue.settle(turn, time.monotonic(), again=has_work)

    def _leave(self) -> None:
        self._working -= 1
        self._idle_since = time.monotonic()
        self._idle.notify_all()

    def idle_seconds(self) -> float:
        """For how long no work has run."""
        with self._lock:
            return 0.0 if self._working else time.monotonic() - self._idle_since

    def stop(self, timeout_seconds: float) -> bool:
        """Finishes running work and starts no more. False if some work still runs after the timeout."""
        with self._lock:
            self._stopping.set()
            is_idle = self._idle.wait_for(lambda: not self._working, timeout_seconds)
        self._pool.shutdown(wait=False, cancel_futures=True)
        return is_idle
