"""Calls that are shared by all who request the same: a single flight for each key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, TypeVar

_Key = TypeVar("_Key")
_Flight = TypeVar("_Flight", bound="asyncio.Task[Any] | Future[Any]")
_Result = TypeVar("_Result")


class SingleFlight(Generic[_Key, _Flight]):
    """The flights under way, one for each key: a request during one joins it, and gets its result or its error.

    A flight is a task of an event loop, awaited with `landed`, or the future of a thread (`in_daemon_thread`). Nothing
    of it is kept after its end. Its answer may be older than the request that joins it: where it must not be, requests
    join the next flight (NextFlight). Safe to use from any thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flights: dict[_Key, _Flight] = {}

    def join(self, key: _Key, start: Callable[[], _Flight]) -> _Flight:
        """The flight of the key that is under way; without one, the flight that `start` begins."""
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None and not flight.done():
                return flight
            flight = self._flights[key] = start()
        # Outside of the lock: of a flight that has ended already, it is called at once.
        flight.add_done_callback(partial(self._end, key))
        return flight

    def under_way(self, key: _Key) -> _Flight | None:
        """The flight of the key; None if there is none that has not ended."""
        flight = self._flights.get(key)
        return None if flight is None or flight.done() else flight

    def _end(self, key: _Key, flight: Any) -> None:
        with self._lock:
            # It may have been followed by another one since.
            if self._flights.get(key) is flight:
                del self._flights[key]
        retrieve_exception(flight)


async def landed(flight: asyncio.Task[_Result]) -> _Result:
    """The result or the error of a shared flight. One who is cancelled cancels it for no other."""
    return await asyncio.shield(flight)


def retrieve_exception(flight: asyncio.Task[Any] | Future[Any]) -> None:
    """Called with a flight that has ended: asyncio logs its error as a fault if all who share it were cancelled."""
    if not flight.cancelled():
        flight.exception()


def in_daemon_thread(call: Callable[[], _Result], name: str) -> Future[_Result]:
    """The result of a call in a thread of its own: one that hangs delays nothing, not even a stop."""
    future: Future[_Result] = Future()
    threading.Thread(target=run_flight, args=(call, future), name=name, daemon=True).start()
    return future


def run_flight(call: Callable[[], _Result], future: Future[_Result]) -> None:
    """Makes a call in this thread. Its result, or its error, is that of the flight."""
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
