"""The key set of an issuer in a process. It is read by a thread of its own, while requests use the one before."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final

import jwt
import msgspec

from app.access.oidc.errors import TokenRefused
from app.access.oidc.issuers import Algorithm
from app.access.oidc.key_set import KeySet
from app.infra.errors import Unavailable
from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread

FRESH_SECONDS: Final = 300.0
"""After this time the keys are read again, beside requests."""
WAIT_AFTER_SECONDS: Final = 600.0
"""After this time requests wait for them to be read again. If that fails, the known keys are still used."""
KEPT_SECONDS: Final = 86_400.0
"""For how long keys are used at most while their issuer cannot be reached."""
UNKNOWN_KEY_SECONDS: Final = 30.0
"""How often the keys are read again at most because a token names a key that is not among them."""
RETRY_SECONDS: Final = 10.0
"""How often it is tried again to read keys that could not be read."""
WAIT_SECONDS: Final = 6.0
"""For how long a request waits for keys: a little longer than reading them may take."""

_log = logging.getLogger(__name__)


class _Known(msgspec.Struct, frozen=True):
    keys: KeySet
    read_at: float


class KeyCache:
    """The keys of one issuer. `read` reads them, in a thread; at most one runs at a time.

    `clock`: monotonic seconds. Requests call `key` on the event loop.
    """

    def __init__(
        self, issuer: str, read: Callable[[], KeySet], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._issuer = issuer
        self._read = read
        self._clock = clock
        self._known: _Known | None = None
        self._reads = SingleFlight[str, Future[None]]()
        self._tried_at = float("-inf")
        self._unknown_key_at = float("-inf")

    async def key(self, key_id: str, algorithm: Algorithm) -> jwt.PyJWK:
        """The key of this id. Raises TokenRefused if there is none, Unavailable if the keys cannot be read."""
        age = self._age()
        if age >= FRESH_SECONDS:
            self._start(self._tried_at + RETRY_SECONDS)
            if age >= WAIT_AFTER_SECONDS:
                await self._wait()
        jwk = self._find(key_id, algorithm)
        if jwk is None:
            if self._start(self._unknown_key_at + UNKNOWN_KEY_SECONDS):
                self._unknown_key_at = self._clock()
            await self._wait()
            jwk = self._find(key_id, algorithm)
        if jwk is None:
            raise TokenRefused("key", "the issuer of the token has no such key")
        return jwk

    def _age(self) -> float:
        return float("inf") if self._known is None else self._clock() - self._known.read_at

    def _find(self, key_id: str, algorithm: Algorithm) -> jwt.PyJWK | None:
        snapshot = self._known
        if snapshot is None or self._clock() - snapshot.read_at >= KEPT_SECONDS:
            raise Unavailable(
                "the keys of the token's issuer cannot be read. Try again", retry_after_seconds=10
            )
        return snapshot.keys.get((key_id, algorithm))

    def _start(self, not_before: float) -> bool:
        """Starts to read the keys, unless that is being done or was done too short a time ago."""
        if self._reads.under_way(self._issuer) is not None or self._clock() < not_before:
            return False
        self._tried_at = self._clock()
        # Looking up a name may take longer than a stop.
        self._reads.join(self._issuer, partial(in_daemon_thread, self._refresh, "issuer keys"))
        return True

    def _refresh(self) -> None:
        read_at = self._clock()
        try:
            self._known = _Known(self._read(), read_at)
        except Exception as error:
            # Whatever the issuer sends must not end what reads it; the next attempt may succeed.
            _log.warning("the keys of %s cannot be read: %s", self._issuer, error)

    async def _wait(self) -> None:
        read = self._reads.under_way(self._issuer)
        if read is not None:
            # Neither the end of the wait nor that of the request ends it.
            await asyncio.wait({asyncio.wrap_future(read)}, timeout=WAIT_SECONDS)
