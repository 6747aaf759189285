"""Responses that clients have requested and do not read."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from app.access.tenants.errors import RateLimited
from app.infra.sharing.fair_slots import FairSlots

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

    def __init__(self, bytes_max: int, page_bytes: int | None = None) -> None:
        """`bytes_max`: of one tenant. `page_bytes`: what a page counts as while it is read."""
        self._bytes_max = bytes_max
        self._page_bytes = max(bytes_max // _PAGES, 1) if page_bytes is None else page_bytes
        self._unread = FairSlots(sys.maxsize, party_max=bytes_max)
        self._senders: Counter[tuple[str, int]] = Counter()

    def of(self, tenant_id: str) -> int:
        """The bytes that the tenant has not read, with those that are reserved for pages that are being read."""
        return self._unread.held(tenant_id)

    @contextmanager
    def sending(self, tenant_id: str, body: bytes | bytearray) -> Iterator[None]:
        """The body is unread until the context ends. One that several responses share counts once."""
        key = (tenant_id, id(body))
        if not self._senders[key]:
            self._unread.take(tenant_id, units=len(body))
        self._senders[key] += 1
        try:
            yield
        finally:
            self._senders[key] -= 1
            if not self._senders[key]:
                del self._senders[key]
                self._unread.release(tenant_id, units=len(body))

    @asynccontextmanager
    async def reading(self, tenant_id: str, seconds: float) -> AsyncIterator[None]:
        """A page is read for the tenant until the context ends. Waits until it has read enough of its earlier ones.

        Raises RateLimited if that takes longer than `seconds`.
        """
        async with self._unread.slot(tenant_id, seconds, units=self._page_bytes) as has_room:
            if not has_room:
                raise RateLimited(
                    "too many bytes of earlier responses are not read yet: read them before the next request",
                    quota="unread_bytes",
                    limit=self._bytes_max,
                    used=self.of(tenant_id),
                    limited="tenant",
                    retry_after_seconds=_RETRY_SECONDS,
                )
            yield
