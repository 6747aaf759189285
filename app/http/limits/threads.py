"""Where handlers run the synchronous use cases: bounded threads, so that the event loop never waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from functools import partial
from typing import Final, ParamSpec, TypeVar

from app.http.limits.unread_bytes import UnreadBytes
from app.infra.sharing.fair_slots import FairSlots

THREADS_MAX: Final = 40
# Pages of rows and changes are decoded in memory. More at a time would be no faster, and take more of it.
PAGE_THREADS_MAX: Final = 8
# For how long a request waits until its tenant has read earlier responses.
_ROOM_SECONDS_MAX: Final = 10.0
# Each stream of merged rows keeps rows of a file group in memory until its reader has them.
ROW_STREAMS_MAX: Final = 8
ROW_STREAMS_TENANT_MAX: Final = 4
# Receivers of webhooks and their name servers take their time; they get these threads and no others.
OUTBOUND_THREADS_MAX: Final = 4
OUTBOUND_TENANT_MAX: Final = 2

PARTY: Final[ContextVar[str]] = ContextVar("party", default="")
"""For whom the current request is: its tenant; empty before it is known."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Threads:
    """Runs calls in a limited number of threads, which tenants share; further calls wait without a thread."""

    def __init__(self, threads_max: int = THREADS_MAX, *, party_max: int | None = None) -> None:
        """`party_max`: the threads of one party; None for all."""
        self._slots = FairSlots(threads_max, party_max=party_max)
        # The executor of asyncio takes half the processor time of a call through anyio.
        self._executor = ThreadPoolExecutor(threads_max, thread_name_prefix="requests")

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the call returns or raises. A cancelled request waits for it: it may hold a transaction."""
        party = PARTY.get()
        await self._slots.acquire(party)
        try:
            call = partial(copy_context().run, partial(function, *args, **kwargs))
            return await _ended(asyncio.get_running_loop().run_in_executor(self._executor, call))
        finally:
            self._slots.release(party)

    async def run_for(
        self, party: str, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs
    ) -> _T:
        """`run` for this party: in a task that belongs to no request."""
        PARTY.set(party)
        return await self.run(function, *args, **kwargs)


class PageThreads(Threads):
    """Threads that read pages. A page is read once its tenant has read enough of its earlier ones."""

    def __init__(
        self, unread: UnreadBytes, threads_max: int = PAGE_THREADS_MAX, *, party_max: int | None = None
    ) -> None:
        super().__init__(threads_max, party_max=party_max)
        self._unread = unread

    def apart(self, threads_max: int, *, party_max: int) -> PageThreads:
        """Further threads for responses of another kind, which count as unread with these."""
        return PageThreads(self._unread, threads_max, party_max=party_max)

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """`Threads.run`. Raises RateLimited if the tenant does not read."""
        async with self._unread.reading(PARTY.get(), _ROOM_SECONDS_MAX):
            return await super().run(function, *args, **kwargs)

    async def run_part(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """`Threads.run` for the next part of a response that has begun, whose parts are sent one after another."""
        return await super().run(function, *args, **kwargs)


async def _ended(call: asyncio.Future[_T]) -> _T:
    """What the call returns or raises. Raises CancelledError of the caller only once the call has ended."""
    try:
        return await asyncio.shield(call)
    except asyncio.CancelledError:
        while not call.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([call])
        if not call.cancelled():
            # An error of the call that nothing else retrieves would be logged as a fault.
            call.exception()
        raise
