"""Positions in feeds, and their followers: webhooks, exports and views."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Protocol

import msgspec

from app.core.changes.positions import SnapshotPosition


class ConsumerKind(str, Enum):
    """The kind of a consumer, which determines who moves its position: a reader, or workers.

    The position of a `partition_webhook` is not in the feed: it counts events of partitions.
    """

    READER = "reader"
    WEBHOOK = "webhook"
    PARTITION_WEBHOOK = "partition_webhook"
    EXPORT = "export"
    VIEW = "view"


class Consumer(msgspec.Struct, frozen=True, kw_only=True):
    """A durable position in the feed of a dataset: the changes before it are processed.

    Or it is within the rows of a version, with which it started: then `snapshot` is where, and `position` is where the
    changes after the version start.

    `revision` counts the updates of the position. `max_lag_rows`, `max_lag_seconds`: how far behind the head it may be
    and still protect its changes from expiry (None: no limit). `member` holds the lease until `lease_until`;
    `lease_epoch` counts the leases.
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
    snapshot: SnapshotPosition | None = None

    @property
    def place(self) -> int | SnapshotPosition:
        """Where it continues."""
        return self.position if self.snapshot is None else self.snapshot


class Follower(Protocol):
    """Processes new changes, by kind of consumer."""

    def follow(self, tenant_id: str, consumer: Consumer) -> float | None:
        """Processes the next bounded batch for a consumer that this worker has claimed for a minute or two.

        Returns when the consumer is due again: after this number of seconds, whatever is written meanwhile (`math.inf`:
        never by itself), or, for None, once its position is behind the head, possibly at once. Batches must be
        idempotent: a worker may end before it records that a batch is done.
        """
        ...


class Followers(Protocol):
    """Consumers that workers process: webhooks, exports, views."""

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets with followers that are due and not claimed."""
        ...

    def claim(self, tenant_id: str, dataset_id: str, owner: str, lease_seconds: float) -> Consumer | None:
        """A follower of the dataset that is due, now claimed by `owner`; None if no such follower is free."""
        ...

    def settle(self, tenant_id: str, consumer: Consumer, wake_after_seconds: float | None) -> None:
        """Releases the claim and sets when the follower is due again, as `Follower.follow` returned it.

        Does nothing if the claim was lost meanwhile.
        """
        ...
