"""Responses that clients have requested and do not read."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from app.tenants.quotas import RateLimited

# Tenants that read nothing have this many times the share of one, together.
_TENANTS: Final = 4
_RETRY_SECONDS: Final = 1


class UnreadBytes:
    """The bytes of large responses in memory that are not sent yet, by tenant. Belongs to the event loop.

    Pages are read faster than clients receive them. A tenant that has this many bytes unread gets no further page
    before it has read some. If all have four times as many, only tenants with nothing unread get one.
    """

    def __init__(self, bytes_max: int) -> None:
        """`bytes_max`: of one tenant."""
        self._bytes_max = bytes_max
        self._of_tenant: Counter[str] = Counter()
        self._senders: Counter[tuple[str, int]] = Counter()
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}

    @contextmanager
    def sending(self, tenant_id: str, body: bytes) -> Iterator[None]:
        """The body is unread until the context ends. One that several responses share counts once."""
        key = (tenant_id, id(body))
        if not self._senders[key]:
            self._of_tenant[tenant_id] += len(body)
        self._senders[key] += 1
        try:
            yield
        finally:
            self._senders[key] -= 1
            if not self._senders[key]:
                del self._senders[key]
                self._free(tenant_id, len(body))

    def has_room(self, tenant_id: str) -> bool:
        """Whether a further page may be read for the tenant."""
        unread = self._of_tenant.get(tenant_id, 0)
        return not unread or (
            unread < self._bytes_max and self._of_tenant.total() < _TENANTS * self._bytes_max
        )

    async def room(self, tenant_id: str, seconds: float) -> None:
        """Waits until `has_room`. Raises RateLimited if that takes longer than `seconds`."""
        if self.has_room(tenant_id):
            return
        freed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(tenant_id, set())
        waiting.add(freed)
        try:
            await asyncio.wait([freed], timeout=seconds)
        finally:
            waiting.discard(freed)
            if not waiting and self._waiting.get(tenant_id) is waiting:
                del self._waiting[tenant_id]
        if not freed.done():
            raise RateLimited(
                "too many bytes of earlier responses are not read yet: read them before the next request",
                quota="unread_bytes",
                limit=self._bytes_max,
                used=self._of_tenant[tenant_id],
                limited="tenant",
                retry_after_seconds=_RETRY_SECONDS,
            )

    def _free(self, tenant_id: str, size: int) -> None:
        self._of_tenant[tenant_id] -= size
        if not self._of_tenant[tenant_id]:
            del self._of_tenant[tenant_id]
        for waiting_tenant, waiting in list(self._waiting.items()):
            if self.has_room(waiting_tenant):
                del self._waiting[waiting_tenant]
                for freed in waiting:
                    freed.set_result(None)
