"""Responses that clients have requested and do not read."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from app.access.tenants.quotas import RateLimited

LARGE_BYTES: Final = 256 * 1024
"""Larger bodies count. They are sent in pieces of this size, each once most of the one before is read."""
# What a page counts as while it is read, as a share of what may be unread. Its size is not known before.
_PAGES: Final = 8
_RETRY_SECONDS: Final = 1


class UnreadBytes:
    """The bytes of large responses in memory that are not sent yet, by tenant. Belongs to the event loop.

    Pages are read faster than clients receive them. A tenant that has too many bytes unread gets its next page once it
    has read some of them. No tenant waits for another one.
    """

    def __init__(self, bytes_max: int) -> None:
        """`bytes_max`: of one tenant."""
        self._bytes_max = bytes_max
        self._page_bytes = max(bytes_max // _PAGES, 1)
        self._unread: Counter[str] = Counter()
        self._senders: Counter[tuple[str, int]] = Counter()
        # The reads that wait, in the order in which they came.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def of(self, tenant_id: str) -> int:
        """The bytes that the tenant has not read, with those that are reserved for pages that are being read."""
        return self._unread.get(tenant_id, 0)

    @contextmanager
    def sending(self, tenant_id: str, body: bytes) -> Iterator[None]:
        """The body is unread until the context ends. One that several responses share counts once."""
        key = (tenant_id, id(body))
        if not self._senders[key]:
            self._unread[tenant_id] += len(body)
        self._senders[key] += 1
        try:
            yield
        finally:
            self._senders[key] -= 1
            if not self._senders[key]:
                del self._senders[key]
                self._free(tenant_id, len(body))

    @asynccontextmanager
    async def reading(self, tenant_id: str, seconds: float) -> AsyncIterator[None]:
        """A page is read for the tenant until the context ends. Waits until it has read enough of its earlier ones.

        Raises RateLimited if that takes longer than `seconds`.
        """
        await self._reserve(tenant_id, seconds)
        try:
            yield
        finally:
            self._free(tenant_id, self._page_bytes)

    async def _reserve(self, tenant_id: str, seconds: float) -> None:
        if tenant_id not in self._waiting and self._has_room(tenant_id):
            self._unread[tenant_id] += self._page_bytes
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tenant_id, deque()).append(turn)
        try:
            await asyncio.wait([turn], timeout=seconds)
        except asyncio.CancelledError:
            if turn.done():
                # Its turn came at the same moment.
                self._free(tenant_id, self._page_bytes)
            raise
        finally:
            if not turn.done():
                self._remove(tenant_id, turn)
        if not turn.done():
            raise RateLimited(
                "too many bytes of earlier responses are not read yet: read them before the next request",
                quota="unread_bytes",
                limit=self._bytes_max,
                used=self.of(tenant_id),
                limited="tenant",
                retry_after_seconds=_RETRY_SECONDS,
            )

    def _has_room(self, tenant_id: str) -> bool:
        return self.of(tenant_id) < self._bytes_max

    def _free(self, tenant_id: str, size: int) -> None:
        self._unread[tenant_id] -= size
        while tenant_id in self._waiting and self._has_room(tenant_id):
            turn = self._waiting[tenant_id][0]
            self._remove(tenant_id, turn)
            self._unread[tenant_id] += self._page_bytes
            turn.set_result(None)
        if not self._unread[tenant_id]:
            del self._unread[tenant_id]

    def _remove(self, tenant_id: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting[tenant_id]
        turns.remove(turn)
        if not turns:
            del self._waiting[tenant_id]
