"""The principal of a credential, cached while the process hears of every change of keys and tenants."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable
from typing import Final

import msgspec

from app.http.threads import Threads
from app.tenants.values import Principal

_CACHE_SIZE_MAX: Final = 10_000
# An unknown key is looked up at most this often; keys are random, so none becomes known meanwhile.
_UNKNOWN_SECONDS: Final = 2.0
# How long ago the listening connection may have been confirmed. A lost one is noticed earlier, unless nothing arrives.
CONFIRMED_SECONDS: Final = 2.0


class _Cached(msgspec.Struct, frozen=True):
    """A principal, and the time (of the monotonic clock) at which its key expires."""

    principal: Principal
    expires_at: float


class Credentials:
    """Calls `authenticate`, and caches its answers by digest, which saves a query per request.

    Requests call `principal` on the event loop; another thread calls the other methods. Nothing is served from the
    cache unless `confirm` was called within the last seconds.
    """

    def __init__(self, authenticate: Callable[[str], Principal | None], threads: Threads) -> None:
        self._authenticate = authenticate
        self._threads = threads
        self._lock = threading.Lock()
        self._cached: dict[bytes, _Cached] = {}
        self._unknown: dict[bytes, float] = {}
        self._changes = 0
        self._confirmed_at = -CONFIRMED_SECONDS
        self._used: dict[str, set[str]] = {}
        self._used_count = 0

    async def principal(self, api_key: str) -> Principal | None:
        """The principal of a key; None if the text is not a valid key."""
        digest = hashlib.sha256(api_key.encode()).digest()
        found = self._known(digest)
        if found is None and self._unknown.get(digest, 0.0) <= time.monotonic():
            found = await self._read(api_key, digest)
        if found is None or found.expires_at <= time.monotonic():
            return None
        self._note_use(found.principal)
        return found.principal

    def confirm(self, moment: float) -> None:
        """All changes until this moment (of the monotonic clock) have been reported to `drop`."""
        with self._lock:
            self._confirmed_at = moment

    def drop(self, tenant_id: str) -> None:
        """The keys or the state of a tenant have changed."""
        with self._lock:
            self._changes += 1
            gone = [digest for digest, each in self._cached.items() if each.principal.tenant_id == tenant_id]
            for digest in gone:
                del self._cached[digest]

    def drop_all(self) -> None:
        """Changes may have been missed."""
        with self._lock:
            self._changes += 1
            self._cached.clear()
            self._confirmed_at = -CONFIRMED_SECONDS

    def take_used(self) -> dict[str, set[str]]:
        """The ids of the keys that were used since the last call, by tenant."""
        with self._lock:
            used, self._used, self._used_count = self._used, {}, 0
        return used

    def _known(self, digest: bytes) -> _Cached | None:
        with self._lock:
            if time.monotonic() - self._confirmed_at >= CONFIRMED_SECONDS:
                return None
            return self._cached.get(digest)

    async def _read(self, api_key: str, digest: bytes) -> _Cached | None:
        changes, now = self._changes, time.monotonic()
        principal = await self._threads.run(self._authenticate, api_key)
        if principal is None:
            if len(self._unknown) >= _CACHE_SIZE_MAX:
                self._unknown.clear()
            self._unknown[digest] = now + _UNKNOWN_SECONDS
            return None
        seconds = principal.expires_in_seconds
        found = _Cached(principal, float("inf") if seconds is None else now + seconds)
        with self._lock:
            # What changed during the query may not be in its answer.
            if changes == self._changes:
                if len(self._cached) >= _CACHE_SIZE_MAX:
                    self._cached.clear()
                self._cached[digest] = found
        return found

    def _note_use(self, principal: Principal) -> None:
        with self._lock:
            keys = self._used.setdefault(principal.tenant_id, set())
            if principal.key_id not in keys and self._used_count < _CACHE_SIZE_MAX:
                keys.add(principal.key_id)
                self._used_count += 1
