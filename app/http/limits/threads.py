"""Where handlers run the synchronous use cases: bounded threads, so that the event loop never waits."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

from app.http.limits.fair_slots import FairSlots

THREADS_MAX: Final = 40
# Pages of rows and changes are decoded in memory. More at a time would be no faster, and take more of it.
PAGE_THREADS_MAX: Final = 8
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
        self._limiter = CapacityLimiter(threads_max)

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the call returns or raises. A cancelled request waits for it: it may hold a transaction."""
        party = PARTY.get()
        await self._slots.acquire(party)
        try:
            return await to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._limiter)
        finally:
            self._slots.release(party)
