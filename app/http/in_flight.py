"""Idempotency keys whose first request is still being accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from app.access.errors import IdempotencyInFlight


class InFlight:
    """Refuses a second request with a key while this process still reads or records the first.

    The database decides in the end; this spares a producer that retries too early a second upload.
    """

    def __init__(self) -> None:
        self._keys: set[tuple[str, str, str]] = set()

    @contextmanager
    def reserved(self, tenant_id: str, dataset_id: str, idempotency_key: str | None) -> Iterator[None]:
        """Holds the key, if there is one. Raises IdempotencyInFlight."""
        if idempotency_key is None:
            yield
            return
        key = (tenant_id, dataset_id, idempotency_key)
        if key in self._keys:
            raise IdempotencyInFlight("the first request with this Idempotency-Key is still being accepted")
        self._keys.add(key)
        try:
            yield
        finally:
            self._keys.discard(key)
