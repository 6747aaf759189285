"""Calls that are shared by all who request the same before they begin: the next flight of each key."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

from app.infra.sharing.single_flight import landed, retrieve_exception

_Key = TypeVar("_Key")
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

Fly: TypeAlias = Callable[[_Key, Sequence[_Item]], Awaitable[_Result]]
"""Called with a key, and with the items of all who have joined, each once."""


@dataclass(kw_only=True, slots=True, eq=False)
class _Waiting(Generic[_Item, _Result]):
    """A flight that has not departed."""

    flight: asyncio.Task[_Result]
    items: dict[_Item, None] = field(default_factory=dict)


class NextFlight(Generic[_Key, _Item, _Result]):
    """Flights by key: a request joins the next one to depart, and all that do so share it.

    Why it is not a SingleFlight: an answer is never older than the request that gets it. One that is under way may have
    read before the request came, so it is never joined. Belongs to the event loop.
    """

    def __init__(self, fly: Fly[_Key, _Item, _Result], *, gather_seconds: float | None = None) -> None:
        """`gather_seconds`: for how long a flight waits for others to join, beside those that are under way.
        None: until the one before it has ended.
        """
        self._fly = fly
        self._gather_seconds = gather_seconds
        self._waiting: dict[_Key, _Waiting[_Item, _Result]] = {}
        self._under_way: dict[_Key, asyncio.Task[_Result]] = {}

    def busy(self, key: _Key) -> bool:
        """Whether a flight of the key waits or is under way."""
        return key in self._waiting or key in self._under_way

    async def join(self, key: _Key, items: Collection[_Item] = ()) -> _Result:
        """What the flight for these items, and those of others, returns or raises. One who is cancelled cancels it for
        no other.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            # It is of no single request: neither its transaction nor its act.
            flight = asyncio.create_task(self._depart(key), name="flight", context=Context())
            flight.add_done_callback(retrieve_exception)
            waiting = self._waiting[key] = _Waiting(flight=flight)
        waiting.items.update(dict.fromkeys(items))
        return await landed(waiting.flight)

    async def _depart(self, key: _Key) -> _Result:
        if self._gather_seconds is not None:
            await asyncio.sleep(self._gather_seconds)
            # From here on, a request that comes may be later than the answer.
            return await self._fly(key, [*self._waiting.pop(key).items])
        before: asyncio.Task[Any] | None = self._under_way.get(key)
        if before is not None:
            await asyncio.wait([before])
        self._under_way[key] = self._waiting[key].flight
        items = [*self._waiting.pop(key).items]
        try:
            return await self._fly(key, items)
        finally:
            del self._under_way[key]
