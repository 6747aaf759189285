"""Bells that ring when something happens to a dataset."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Bell:
    """One who waits for rings, at the cost of no thread."""

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
    """The bells of each dataset. Belongs to the event loop: every method is called on its thread.

    A ring is a hint. Whoever waits also looks again every so often, so that a lost one costs time only.
    """

    def __init__(self) -> None:
        self._bells: dict[tuple[str, str], set[Bell]] = {}
        self.closed = False

    def hang(self, tenant_id: str, dataset_id: str) -> Bell:
        """A bell that rings for this dataset, until it is taken down."""
        bell = Bell()
        self._bells.setdefault((tenant_id, dataset_id), set()).add(bell)
        return bell

    def take_down(self, tenant_id: str, dataset_id: str, bell: Bell) -> None:
        """The end of `hang`."""
        key = (tenant_id, dataset_id)
        self._bells[key].discard(bell)
        if not self._bells[key]:
            del self._bells[key]

    def ring(self, tenant_id: str, dataset_id: str) -> None:
        """Something happened to the dataset."""
        for bell in self._bells.get((tenant_id, dataset_id), ()):
            bell.ring()

    def close(self) -> None:
        """The process is about to stop: whoever waits answers with what there is."""
        self.closed = True
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()
