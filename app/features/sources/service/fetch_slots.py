"""Slots of rounds whose input is fetched by threads of writes: what they read from may be silent for a minute."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.kernel.format.errors import SourcesBusy


class FetchSlots:
    """Slots of a worker, of which a tenant holds half at most. Without a free one, the thread goes on to other work."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._tenant_max = max(1, slots // 2)
        self._held: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def slot(self, tenant_id: str) -> Iterator[None]:
        """A slot until the context ends. Raises SourcesBusy."""
        with self._lock:
            if self._held[tenant_id] >= self._tenant_max or self._held.total() >= self._slots:
                raise SourcesBusy("this worker runs as many rounds that read from elsewhere as it may")
            self._held[tenant_id] += 1
        try:
            yield
        finally:
            with self._lock:
                self._held[tenant_id] -= 1
                if not self._held[tenant_id]:
                    del self._held[tenant_id]
