"""The threads in which files are rendered, shared by tenants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, wait
from functools import partial
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from app.infra.sharing.fair_slots import FairSlots
from app.infra.sharing.single_flight import SingleFlight, run_flight

_Result = TypeVar("_Result")
_Key = tuple[str, str, bytes]

THREADS_MAX: Final = 3
"""Files that a process renders at once."""
THREADS_TENANT_MAX: Final = 2
QUEUED_TENANT_MAX: Final = 256
"""Files of a tenant that wait for a thread. The others are begun by the next request."""
WAITING_MAX: Final = 8
"""Requests that wait for files. The threads of requests are left to others."""
WAITING_TENANT_MAX: Final = 3


class RenderingThreads(Generic[_Result]):
    """Renders each file once for all who request it meanwhile. Threads that become free go to the tenant that has the
    fewest. A process has one.
    """

    def __init__(
        self,
        *,
        threads: int = THREADS_MAX,
        tenant_max: int = THREADS_TENANT_MAX,
        queued_max: int = QUEUED_TENANT_MAX,
    ) -> None:
        self._slots = FairSlots(threads, party_max=tenant_max, waiting_max=queued_max)
        self._waiting = FairSlots(WAITING_MAX, party_max=WAITING_TENANT_MAX)
        self._flights = SingleFlight[_Key, Future[_Result]]()
        self._queue = SimpleQueue[tuple[str, Callable[[], _Result], Future[_Result]]]()
        self._thread_count = threads
        self._start_lock = threading.Lock()

    def join(self, key: _Key, render: Callable[[], _Result]) -> Future[_Result] | None:
        """The rendering of the key that is under way, or begins now. The first member of the key is the tenant. None if
        too many files of the tenant wait.
        """
        self._start_threads()
        try:
            return self._flights.join(key, partial(self._begin, key[0], render))
        except _TooMany:
            return None

    def wait(self, tenant_id: str, flights: Collection[Future[_Result]], seconds: float) -> None:
        """Waits until the flights have ended, at most for this time, and not at all if too many requests wait."""
        with self._waiting.slot_if_free(tenant_id) as may_wait:
            wait(flights, timeout=seconds if may_wait else 0)

    def _begin(self, tenant_id: str, render: Callable[[], _Result]) -> Future[_Result]:
        future = Future[_Result]()
        turn = self._slots.enter(tenant_id, partial(self._queue.put, (tenant_id, render, future)))
        if turn is None:
            raise _TooMany
        return future

    def _start_threads(self) -> None:
        if self._thread_count:
            with self._start_lock:
                while self._thread_count:
                    threading.Thread(target=self._work, name="rendering", daemon=True).start()
                    self._thread_count -= 1

    def _work(self) -> None:
        while True:
            tenant_id, render, future = self._queue.get()
            run_flight(render, future)
            self._slots.release(tenant_id)


class _TooMany(Exception):
    """Too many files of a tenant wait."""
