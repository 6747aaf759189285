"""The turns in which tenants call a shared service: few at a time, and each tenant waits in its own queue."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

TURNS_MAX: Final = 16
"""The calls at a time."""
TENANT_TURNS_MAX: Final = 4
"""Those of one tenant."""
_TENANT_WAITING_MAX: Final = 64


class Turns:
    """Hands out turns, one tenant after another. Belongs to the event loop."""

    def __init__(self) -> None:
        self._free = TURNS_MAX
        self._held: dict[str, int] = {}
        # The tenant at the front is next.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def turn(self, tenant_id: str, seconds: float) -> AsyncIterator[bool]:
        """A turn of the tenant until the context ends; False if it has none within this time, or too many wait."""
        if not await self._taken(tenant_id, seconds):
            yield False
            return
        try:
            yield True
        finally:
            self._give_back(tenant_id)

    async def _taken(self, tenant_id: str, seconds: float) -> bool:
        if self._free and self._held.get(tenant_id, 0) < TENANT_TURNS_MAX:
            self._hold(tenant_id)
            return True
        queue = self._waiting.setdefault(tenant_id, deque())
        if len(queue) >= _TENANT_WAITING_MAX:
            return False
        given = asyncio.get_running_loop().create_future()
        queue.append(given)
        try:
            await asyncio.wait([given], timeout=seconds)
        except asyncio.CancelledError:
            if given.done():
                self._give_back(tenant_id)
            raise
        finally:
            if not given.done():
                self._remove(tenant_id, given)
        return given.done()

    def _hold(self, tenant_id: str) -> None:
        self._free -= 1
        self._held[tenant_id] = self._held.get(tenant_id, 0) + 1

    def _give_back(self, tenant_id: str) -> None:
        self._free += 1
        self._held[tenant_id] -= 1
        if not self._held[tenant_id]:
            del self._held[tenant_id]
        # At most TURNS_MAX // TENANT_TURNS_MAX tenants have all their turns, so the search is short.
        next_one = next((each for each in self._waiting if self._held.get(each, 0) < TENANT_TURNS_MAX), None)
        if next_one is None:
            return
        given = self._waiting[next_one][0]
        self._remove(next_one, given)
        if next_one in self._waiting:
            self._waiting.move_to_end(next_one)
        self._hold(next_one)
        given.set_result(None)

    def _remove(self, tenant_id: str, given: asyncio.Future[None]) -> None:
        queue = self._waiting[tenant_id]
        queue.remove(given)
        if not queue:
            del self._waiting[tenant_id]
