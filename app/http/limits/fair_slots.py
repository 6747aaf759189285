"""Slots that parties share, such as the threads of a process or the calls of a service at a time."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress


class FairSlots:
    """Slots that parties share: one that becomes free goes to the party that waits and holds the fewest.

    Without `party_max` a party alone may hold all of them; another one then waits for the next that becomes free.
    `waiting_max`: of one party. Belongs to the event loop.
    """

    def __init__(self, slots: int, *, party_max: int | None = None, waiting_max: int = sys.maxsize) -> None:
        self._free = slots
        self._party_max = slots if party_max is None else party_max
        self._waiting_max = waiting_max
        self._held: Counter[str] = Counter()
        # By party, the one that was served longest ago first.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, party: str, seconds: float | None = None) -> AsyncIterator[bool]:
        """A slot of the party until the context ends; False if it gets none, as with `acquire`."""
        given = await self.acquire(party, seconds)
        try:
            yield given
        finally:
            if given:
                self.release(party)

    async def acquire(self, party: str, seconds: float | None = None) -> bool:
        """Waits for a slot, which `release` gives back. False if the party gets none within `seconds` (None: any time),
        or if too many of it wait.
        """
        if self._free and self._held[party] < self._party_max:
            self._free -= 1
            self._held[party] += 1
            return True
        if len(self._waiting.get(party, ())) >= self._waiting_max:
            return False
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        try:
            await asyncio.wait([turn], timeout=seconds)
        except asyncio.CancelledError:
            if turn.done():
                # It was given a slot at the same moment.
                self.release(party)
            raise
        finally:
            if not turn.done():
                self._remove(party, turn)
        return turn.done()

    def release(self, party: str) -> None:
        """Gives a slot of the party to the next one, or back."""
        self._held[party] -= 1
        if not self._held[party]:
            del self._held[party]
        below = (each for each in self._waiting if self._held[each] < self._party_max)
        following = min(below, key=lambda each: self._held[each], default=None)
        if following is None:
            self._free += 1
            return
        turn = self._waiting[following][0]
        self._remove(following, turn)
        if following in self._waiting:
            # Behind the others that hold as many.
            self._waiting[following] = self._waiting.pop(following)
        self._held[following] += 1
        turn.set_result(None)

    def _remove(self, party: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[party]
        turns.remove(turn)
        if not turns:
            del self._waiting[party]


class HeldSlot:
    """A slot that a party has acquired: given back once, also if the response that it is for is never sent."""

    def __init__(self, slots: FairSlots, party: str) -> None:
        self._slots = slots
        self._party = party
        self._loop = asyncio.get_running_loop()
        self._held = True

    def release(self) -> None:
        """Gives the slot back, if it was not given back before."""
        if self._held:
            self._held = False
            self._slots.release(self._party)

    async def during(self, parts: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        """These parts; the slot is given back after the last one, or once they are no longer wanted."""
        try:
            async with aclosing(parts):
                async for part in parts:
                    yield part
        finally:
            self.release()

    def __del__(self) -> None:
        # An iterator that nothing has started has no end. It may be collected in any thread.
        if self._held:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._slots.release, self._party)
