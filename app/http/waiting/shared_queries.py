"""One query for what several requests of a tenant read at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Generic, TypeAlias, TypeVar

from app.http.limits.threads import Threads

_Key = TypeVar("_Key")
_Result = TypeVar("_Result")

Query: TypeAlias = Callable[[str, Sequence[_Key]], _Result]
"""Called in a thread, with a tenant and the keys, each once."""


class SharedQueries(Generic[_Key, _Result]):
    """The queries of all tenants. Belongs to the event loop: every method is called on its thread.

    `together_seconds`: how long a query waits for others of its tenant.
    """

    def __init__(self, threads: Threads, query: Query[_Key, _Result], *, together_seconds: float) -> None:
        self._threads = threads
        self._query = query
        self._together_seconds = together_seconds
        self._next: dict[str, tuple[set[_Key], asyncio.Task[_Result]]] = {}

    async def find(self, tenant_id: str, keys: Collection[_Key]) -> _Result:
        """The result of a query for these keys and others. Raises what the query raises."""
        if tenant_id not in self._next:
            wanted: set[_Key] = set()
            running = asyncio.create_task(self._run(tenant_id, wanted), name="shared-query")
            self._next[tenant_id] = wanted, running
        wanted, running = self._next[tenant_id]
        wanted.update(keys)
        # One that is cancelled must not cancel the others.
        return await asyncio.shield(running)

    async def _run(self, tenant_id: str, wanted: set[_Key]) -> _Result:
        await asyncio.sleep(self._together_seconds)
        del self._next[tenant_id]
        return await self._threads.run(self._query, tenant_id, list(wanted))
