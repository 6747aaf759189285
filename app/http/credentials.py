"""The principal of a credential."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Final

from app.http.threads import Threads
from app.tenants.values import Principal

# The longest time, in seconds, that a revoked key still works.
_CACHE_SECONDS: Final = 5.0
_CACHE_SIZE_MAX: Final = 10_000


class Credentials:
    """Calls `authenticate`, and caches valid keys by digest for a few seconds, which saves a query per request."""

    def __init__(self, authenticate: Callable[[str], Principal | None], threads: Threads) -> None:
        self._authenticate = authenticate
        self._threads = threads
        self._cached: dict[bytes, tuple[float, Principal]] = {}

    async def principal(self, api_key: str) -> Principal | None:
        """The principal of a key; None if the text is not a valid key."""
        digest = hashlib.sha256(api_key.encode()).digest()
        now = time.monotonic()
        until, principal = self._cached.get(digest, (0.0, None))
        if principal is not None and now < until:
            return principal
        principal = await self._threads.run(self._authenticate, api_key)
        if principal is None:
            self._cached.pop(digest, None)
            return None
        if len(self._cached) >= _CACHE_SIZE_MAX:
            self._cached.clear()
        self._cached[digest] = (now + _CACHE_SECONDS, principal)
        return principal
