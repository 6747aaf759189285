"""The secrets of the deployment, as a process knows them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from app.infra.errors import Unavailable

FRESH_SECONDS: Final = 60.0
"""A rotation is known to every process after this time."""
# A generation that is not known is looked for at most this often.
_PAUSE_SECONDS: Final = 1.0


class KnownSecrets:
    """The secrets by generation, read once and again after a minute. Safe to use from any thread."""

    def __init__(
        self, read: Callable[[], Mapping[int, bytes]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = threading.Lock()
        self._secrets: Mapping[int, bytes] = {}
        self._read_at = float("-inf")

    def known(self, generation: int) -> bytes | None:
        """The secret, without waiting for anything; None if `refresh` has to be called, or there is none."""
        return self._secrets.get(generation) if self._age() < FRESH_SECONDS else None

    def may_read(self) -> bool:
        """Whether `refresh` would read: it does so at most once a second."""
        return self._age() >= _PAUSE_SECONDS

    def refresh(self) -> None:
        """Reads the secrets, unless that was done just now. Raises Unavailable."""
        with self._lock:
            if self.may_read():
                self._secrets, self._read_at = self._read(), self._clock()

    def latest(self) -> tuple[int, bytes]:
        """The generation that signs, and its secret. Raises Unavailable."""
        if self._age() >= FRESH_SECONDS:
            self.refresh()
        if not self._secrets:
            raise Unavailable("the database has no secret for keys of tables: run `headwater init`")
        generation = max(self._secrets)
        return generation, self._secrets[generation]

    def _age(self) -> float:
        return self._clock() - self._read_at
