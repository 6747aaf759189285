"""The requests and the bytes sent of each key, counted until they are recorded."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

from app.access.tenants.usage import KeyUsage
from app.access.tenants.values import Principal

_KEYS_MAX: Final = 100_000


class UsageCounter:
    """Counts. Requests call `note` on the event loop; another thread takes what was counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, str], list[int]] = {}

    def note(self, principal: Principal, egress_bytes: int) -> None:
        """A request of the principal has ended, and sent this many bytes of bodies."""
        self._add(principal.tenant_id, principal.actor, 1, egress_bytes)

    def take(self) -> list[KeyUsage]:
        """What was counted since the last call."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return [
            KeyUsage(tenant_id=tenant_id, key_id=key_id, requests=requests, egress_bytes=egress_bytes)
            for (tenant_id, key_id), (requests, egress_bytes) in counts.items()
        ]

    def put_back(self, usages: Sequence[KeyUsage]) -> None:
        """What could not be recorded."""
        for each in usages:
            self._add(each.tenant_id, each.key_id, each.requests, each.egress_bytes)

    def _add(self, tenant_id: str, key_id: str, requests: int, egress_bytes: int) -> None:
        with self._lock:
            counts = self._counts.get((tenant_id, key_id))
            if counts is None:
                if len(self._counts) >= _KEYS_MAX:
                    return
                counts = self._counts[tenant_id, key_id] = [0, 0]
            counts[0] += requests
            counts[1] += egress_bytes
