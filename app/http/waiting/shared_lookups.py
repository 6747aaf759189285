"""Lookups that concurrent requests share: one for all that arrive during the last one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Generic, TypeAlias, TypeVar

from app.http.limits.threads import PARTY, Threads

_Found = TypeVar("_Found")
_Key: TypeAlias = tuple[str, str]


class SharedLookups(Generic[_Found]):
    """What something is looked up as, by tenant and reference. Belongs to the event loop.

    A request that arrives during a lookup waits for the next one, so that its answer is not older than itself. All that
    wait for the same reference share that lookup.
    """

    def __init__(self, read: Callable[[str, str], _Found], threads: Threads) -> None:
        """`read` is called in a thread, with a tenant and a reference."""
        self._read = read
        self._threads = threads
        self._running: dict[_Key, asyncio.Task[_Found]] = {}
        self._next: dict[_Key, asyncio.Task[_Found]] = {}

    async def get(self, tenant_id: str, reference: str) -> _Found:
        """What `read` returns or raises. A cancelled request does not cancel the lookup for the others."""
        key = (tenant_id, reference)
        lookup = self._next.get(key)
        if lookup is None:
            # It is of no single request: neither its transaction nor its act.
            run = self._run(key, self._running.get(key))
            lookup = asyncio.create_task(run, name="lookup", context=Context())
            self._next[key] = lookup
            lookup.add_done_callback(retrieve_exception)
        return await asyncio.shield(lookup)

    async def _run(self, key: _Key, last: asyncio.Task[_Found] | None) -> _Found:
        PARTY.set(key[0])
        if last is not None:
            await asyncio.wait([last])
        # From here on, a request that arrives may be later than the answer.
        self._running[key] = self._next.pop(key)
        try:
            return await self._threads.run(self._read, *key)
        finally:
            del self._running[key]


def retrieve_exception(shared: asyncio.Task[_Found]) -> None:
    """Called with a task that has ended: asyncio logs a warning if all requests that share it were cancelled."""
    if not shared.cancelled():
        shared.exception()
