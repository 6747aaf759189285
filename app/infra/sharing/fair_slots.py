"""Slots that parties share, such as the threads of a process, the calls of a service or the tasks of a cluster."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SlotTurn:
    """A place in the queue of a party. `begin`: called once with its slots."""

    party: str
    kind: str
    units: int
    begin: Callable[[], object]

    @property
    def owner(self) -> tuple[str, str]:
        """Who takes turns with others: a party's work of one kind."""
        return self.party, self.kind


class FairSlots:
    """Slots that parties share: one that becomes free goes to the party that waits and holds the fewest.

    Of parties that hold as many, the one that was served longest ago comes first. The kinds of work of a party take
    turns as parties do, and share what the party may hold. Work that takes more than one slot (`units`) starts as soon
    as the party holds fewer than it may, and may exceed that by its own size: so no work is too large to start.

    Safe to use from any thread. What waits on an event loop (`acquire`, `slot`) needs slots whose other users are on
    the same loop: who releases a slot begins the next place.

    Work whose time differs much is not shared fairly by a number of slots: the queue of a worker's datasets
    (workers/jobs/fair_queue.py) charges tenants with the time that their work takes instead.
    """

    def __init__(self, slots: int, *, party_max: int | None = None, waiting_max: int = sys.maxsize) -> None:
        """`party_max`: the slots of one party; None for all, so that another one waits for the next that becomes free.

        `waiting_max`: how many of one party wait.
        """
        self._lock = threading.Lock()
        self._free = slots
        self._party_max = slots if party_max is None else party_max
        self._waiting_max = waiting_max
        self._held: Counter[str] = Counter()
        self._held_of_owner: Counter[tuple[str, str]] = Counter()
        self._waiting_count: Counter[str] = Counter()
        # By owner, the one that was served longest ago first.
        self._waiting: dict[tuple[str, str], deque[SlotTurn]] = {}

    def held(self, party: str) -> int:
        """The slots that the party holds."""
        return self._held[party]

    def demand(self, party: str) -> int:
        """The slots that the party holds, and its turns that wait."""
        return self._held[party] + self._waiting_count[party]

    def total_demand(self) -> int:
        """`demand` of all parties."""
        return self._held.total() + self._waiting_count.total()

    def enter(
        self, party: str, begin: Callable[[], object], *, kind: str = "", units: int = 1
    ) -> SlotTurn | None:
        """A turn of the party: `begin` is called with its slots, now or when they are given back. It calls no method
        of this object. None if too many turns of the party wait.
        """
        place = SlotTurn(party=party, kind=kind, units=units, begin=begin)
        with self._lock:
            if self._may_start(party):
                self._start(place)
            elif self._waiting_count[party] >= self._waiting_max:
                return None
            else:
                self._waiting.setdefault(place.owner, deque()).append(place)
                self._waiting_count[party] += 1
        return place

    def leave(self, place: SlotTurn) -> bool:
        """Gives up a turn that waits; False if it has begun, or was given up before."""
        with self._lock:
            if place not in self._waiting.get(place.owner, ()):
                return False
            self._remove(place)
            return True

    def take(self, party: str, *, units: int = 1) -> None:
        """Takes slots, whether or not there are free ones: what they stand for has happened already."""
        with self._lock:
            self._count(party, "", units)

    def take_if_free(self, party: str, *, units: int = 1) -> bool:
        """Takes slots unless the party would have to wait for them."""
        with self._lock:
            if not self._may_start(party):
                return False
            self._count(party, "", units)
            return True

    def release(self, party: str, *, kind: str = "", units: int = 1) -> None:
        """Gives slots of the party to the next ones, or back."""
        with self._lock:
            self._count(party, kind, -units)
            while self._free > 0 and (owner := self._next()) is not None:
                place = self._waiting[owner][0]
                self._remove(place)
                if owner in self._waiting:
                    # Behind the others that hold as many.
                    self._waiting[owner] = self._waiting.pop(owner)
                self._start(place)

    @contextmanager
    def slot_if_free(self, party: str) -> Iterator[bool]:
        """A slot of the party until the context ends; False if it would have to wait for one."""
        has_slot = self.take_if_free(party)
        try:
            yield has_slot
        finally:
            if has_slot:
                self.release(party)

    async def acquire(self, party: str, seconds: float | None = None, *, units: int = 1) -> bool:
        """Waits for slots, which `release` gives back. False if the party gets none within `seconds` (None: any time),
        or if too many of it wait.
        """
        if self.take_if_free(party, units=units):
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = self.enter(party, partial(turn.set_result, None), units=units)
        if place is None:
            return False
        try:
            await asyncio.wait([turn], timeout=seconds)
        except asyncio.CancelledError:
            if turn.done():
                # It was given its slots at the same moment.
                self.release(party, units=units)
            raise
        finally:
            if not turn.done():
                self.leave(place)
        return turn.done()

    @asynccontextmanager
    async def slot(self, party: str, seconds: float | None = None, *, units: int = 1) -> AsyncIterator[bool]:
        """Slots of the party until the context ends; False if it gets none, as with `acquire`."""
        has_slots = await self.acquire(party, seconds, units=units)
        try:
            yield has_slots
        finally:
            if has_slots:
                self.release(party, units=units)

    def _may_start(self, party: str) -> bool:
        return self._free > 0 and self._held[party] < self._party_max

    def _next(self) -> tuple[str, str] | None:
        """Whose turn is next; None if none of those that wait may start."""
        below = (owner for owner in self._waiting if self._held[owner[0]] < self._party_max)
        return min(below, key=lambda owner: self._held_of_owner[owner], default=None)

    def _start(self, place: SlotTurn) -> None:
        self._count(place.party, place.kind, place.units)
        place.begin()

    def _count(self, party: str, kind: str, units: int) -> None:
        """Counts slots that are taken or, below zero, given back."""
        self._free -= units
        self._held[party] += units
        if not self._held[party]:
            del self._held[party]
        owner = (party, kind)
        self._held_of_owner[owner] += units
        if not self._held_of_owner[owner]:
            del self._held_of_owner[owner]

    def _remove(self, place: SlotTurn) -> None:
        places = self._waiting[place.owner]
        places.remove(place)
        if not places:
            del self._waiting[place.owner]
        self._waiting_count[place.party] -= 1
        if not self._waiting_count[place.party]:
            del self._waiting_count[place.party]


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
