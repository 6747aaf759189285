"""Positions in feeds, and what follows a feed by itself."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Protocol

import msgspec


class ConsumerKind(str, Enum):
    """Who moves the position: a reader its own; those of the others are moved by workers.

    That of a `partition_webhook` is none in the feed: it counts events of partitions.
    """

    READER = "reader"
    WEBHOOK = "webhook"
    PARTITION_WEBHOOK = "partition_webhook"
    EXPORT = "export"
    VIEW = "view"


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A durable position in the feed of a dataset: the changes before it are done with.

    `revision` counts its changes. `max_lag_rows`, `max_lag_seconds`: how far behind the head it may be and still keep
    the feed from being cut before it (None: however far). `member` holds the consumer until `lease_until`;
    `lease_epoch` counts the holds.
    """

    dataset_id: str
    name: str
    kind: ConsumerKind
    position: int
    revision: int
    max_lag_rows: int | None
    max_lag_seconds: int | None
    member: str | None
    lease_epoch: int
    lease_until: datetime | None
    created_at: datetime
    moved_at: datetime


class Follower(Protocol):
    """What is done with new changes, by kind of consumer."""

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        """Does the next bounded piece of work for a consumer that is held by this worker for a minute or two.

        Returns when to look at it again: after so many seconds, whatever is written meanwhile (`math.inf`: not by
        itself), or, with None, whenever its position is behind the head; it may be at once. The work is such that
        doing a piece of it twice does no harm: a worker may die before it says that it is done.
        """
        ...


class Followers(Protocol):
    """Consumers that workers serve: webhooks, exports, views."""

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets with followers that are due and that nobody holds."""
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> Consumer | None:
        """A follower of the dataset that is due, held by `owner` now; None if there is none that is free."""
        ...

    def settle(self, tenant_id: str, consumer: Consumer, wake_after_seconds: float | None) -> None:
        """Ends the hold, and says when the follower is due again, as `Follower.follow` returned it.

        Changes nothing if the hold was lost meanwhile.
        """
        ...
