"""Where handlers run the synchronous use cases: bounded threads, so that the event loop never waits."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Final, ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread

THREADS_MAX: Final = 40
# Pages of rows and changes are decoded in memory. More at a time would be no faster, and take more of it.
PAGE_THREADS_MAX: Final = 8
# Receivers of webhooks and their name servers take their time; they get these threads and no others.
OUTBOUND_THREADS_MAX: Final = 4

PARTY: Final[ContextVar[str]] = ContextVar("party", default="")
"""For whom the current request is: its tenant; empty before it is known."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class FairSlots:
    """Slots that parties share: one that becomes free goes to the party that waits and holds the fewest.

    A party alone may hold all of them; another one then waits for the next that becomes free. Belongs to the event
    loop.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._held: Counter[str] = Counter()
        # By party, the one that was served longest ago first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    async def acquire(self, party: str) -> None:
        """Waits for a slot, which `release` gives back."""
        if self._free:
            self._free -= 1
            self._held[party] += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(party, turn)
            else:
                # It was given a slot at the same moment.
                self.release(party)
            raise

    def release(self, party: str) -> None:
        """Gives a slot of the party to the next one, or back."""
        self._held[party] -= 1
        if not self._held[party]:
            del self._held[party]
        while self._waiting:
            following = min(self._waiting, key=lambda each: self._held[each])
            turns = self._waiting.pop(following)
            turn = turns.popleft()
            if turns:
                # Behind the others that hold as many.
                self._waiting[following] = turns
            # One whose request was cancelled has not left yet.
            if not turn.done():
                self._held[following] += 1
                turn.set_result(None)
                return
        self._free += 1

    def _leave(self, party: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(party, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[party]


class Threads:
    """Runs calls in a limited number of threads, which tenants share; further calls wait without a thread."""

    def __init__(self, threads_max: int = THREADS_MAX) -> None:
        self._slots = FairSlots(threads_max)
        self._limiter = CapacityLimiter(threads_max)

    async def run(self, function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """What the call returns or raises. A cancelled request waits for it: it may hold a transaction."""
        party = PARTY.get()
        await self._slots.acquire(party)
        try:
            return await to_thread.run_sync(partial(function, *args, **kwargs), limiter=self._limiter)
        finally:
            self._slots.release(party)
