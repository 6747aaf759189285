"""Bells that ring when something happens to a dataset."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Subscription:
    """One who waits for rings, at the cost of no thread."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()

    def notify(self) -> None:
        self._notified.set()

    async def wait(self, seconds: float) -> None:
        """Returns at the next ring (one since the last wait counts), or after so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        self._notified.clear()


class Subscriptions:
    """The bells of each dataset. Belongs to the event loop: every method is called on its thread.

    A ring is a hint. Whoever waits also looks again every so often, so that a lost one costs time only.
    """

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str], set[Subscription]] = {}
        self.closed = False

    def subscribe(self, tenant_id: str, dataset_id: str) -> Subscription:
        """A bell that rings for this dataset, until it is taken down."""
        subscription = Subscription()
        self._subscriptions.setdefault((tenant_id, dataset_id), set()).add(subscription)
        return subscription

    def unsubscribe(self, tenant_id: str, dataset_id: str, subscription: Subscription) -> None:
        """The end of `subscribe`."""
        key = (tenant_id, dataset_id)
        self._subscriptions[key].discard(subscription)
        if not self._subscriptions[key]:
            del self._subscriptions[key]

    def notify(self, tenant_id: str, dataset_id: str) -> None:
        """Something happened to the dataset."""
        for subscription in self._subscriptions.get((tenant_id, dataset_id), ()):
            subscription.notify()

    def close(self) -> None:
        """The process is about to stop: whoever waits answers with what there is."""
        self.closed = True
        for waiting in self._subscriptions.values():
            for subscription in waiting:
                subscription.notify()
