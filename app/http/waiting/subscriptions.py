"""Subscriptions to datasets: notified when something happens to one."""

from __future__ import annotations

import asyncio
from contextlib import suppress


class Subscription:
    """Waits for notifications of one dataset without a thread."""

    def __init__(self) -> None:
        self._notified = asyncio.Event()

    def notify(self) -> None:
        self._notified.set()

    async def wait(self, seconds: float) -> None:
        """Returns at the next notification (one since the last wait counts), or after `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._notified.wait()
        self._notified.clear()


class Subscriptions:
    """The subscriptions of each dataset. Belongs to the event loop: every method is called on its thread.

    A notification is a hint. Subscribers also poll, so a lost notification costs latency only. `hears`: whether
    announcements of other processes arrive, so that few notifications are lost.
    """

    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str], set[Subscription]] = {}
        self.hears = False
        self.closed = False

    def subscribe(self, tenant_id: str, dataset_id: str) -> Subscription:
        """A subscription to this dataset; ends with `unsubscribe`."""
        subscription = Subscription()
        self._subscriptions.setdefault((tenant_id, dataset_id), set()).add(subscription)
        return subscription

    def unsubscribe(self, tenant_id: str, dataset_id: str, subscription: Subscription) -> None:
        """Ends a subscription."""
        key = (tenant_id, dataset_id)
        self._subscriptions[key].discard(subscription)
        if not self._subscriptions[key]:
            del self._subscriptions[key]

    def notify(self, tenant_id: str, dataset_id: str) -> None:
        """Notifies the subscriptions of a dataset that something happened to it."""
        for subscription in self._subscriptions.get((tenant_id, dataset_id), ()):
            subscription.notify()

    def set_hears(self, hears: bool) -> None:
        """Announcements arrive from now on, or no longer. All are notified: those until now may have been missed.

        While they do not arrive, subscribers poll often, and are not notified again.
        """
        if hears or self.hears:
            self.hears = hears
            self._notify_all()

    def close(self) -> None:
        """Called when the process is about to stop: waiting requests respond with what there is."""
        self.closed = True
        self._notify_all()

    def _notify_all(self) -> None:
        for waiting in self._subscriptions.values():
            for subscription in waiting:
                subscription.notify()
