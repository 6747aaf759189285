"""Waiting for a dataset to change or a job to end, at the cost of no thread."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Bell:
    """One waiting request."""

    def __init__(self) -> None:
        self._rung = asyncio.Event()

    def ring(self) -> None:
        self._rung.set()

    async def wait(self, seconds: float) -> None:
        """Returns at the next ring (one since the last wait counts), or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        self._rung.clear()


class Wakeups:
    """Who waits for which dataset. Belongs to the event loop: every method is called on its thread.

    A ring is a hint. Whoever waits also looks again every so often, so that a lost one costs time only.
    """

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], set[Bell]] = {}
        self.closed = False

    @contextmanager
    def bell(self, tenant_id: str, dataset_id: str) -> Iterator[Bell]:
        """A bell that rings for this dataset."""
        key = (tenant_id, dataset_id)
        bell = Bell()
        self._waiting.setdefault(key, set()).add(bell)
        try:
            yield bell
        finally:
            self._waiting[key].discard(bell)
            if not self._waiting[key]:
                del self._waiting[key]

    def ring(self, tenant_id: str, dataset_id: str) -> None:
        """Something happened to the dataset."""
        for bell in self._waiting.get((tenant_id, dataset_id), ()):
            bell.ring()

    def close(self) -> None:
        """The process is about to stop: whoever waits answers with what there is."""
        self.closed = True
        for bells in self._waiting.values():
            for bell in bells:
                bell.ring()
