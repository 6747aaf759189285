"""Values of consumers. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec

from headwater_client.models.changes import NextPosition
from headwater_client.models.writes import DatasetIdentity


class ConsumerLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a consumer's resources."""

    self_: str
    """The consumer."""
    dataset: str
    """Its dataset."""
    changes: str
    """The feed from its position on."""


class ConsumerPage(msgspec.Struct, frozen=True, kw_only=True):
    """Consumers by name."""

    items: tuple[FeedConsumer, ...]
    """The consumers of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class CreateLease(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member that leases a consumer."""

    member: str
    """The name of the member."""
    seconds: int
    """How long the lease lasts."""
    token: str | None = None
    """The token of the lease to extend."""


class FeedConsumer(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer: a position in the feed of a dataset. The changes before it are processed."""

    name: str
    """Its name."""
    dataset: DatasetIdentity
    """The dataset."""
    kind: str
    """What moves the position: `reader` for one that clients commit, the others are moved by the service."""
    revision: int
    """Counts the changes of the consumer; its ETag."""
    offset: NextPosition
    """A position: an offset, or a text within the rows of a version."""
    head: int
    """The end of the feed."""
    earliest: int
    """The first offset that can still be read."""
    lag: Lag | None
    """How far the position is behind the head; null for a key that sees a part of the dataset, since it would count
    hidden changes.
    """
    max_lag: MaxLag | None
    """How far behind the head it may be and still keep the changes after its position; null for no limit."""
    expired: bool
    """Whether changes that it has not committed are gone."""
    lease: LeaseHolder | None
    """The member that leases it; null for none."""
    created_at: datetime
    """When it was created."""
    moved_at: datetime
    """When its position last changed."""
    links: ConsumerLinks
    """The paths of its resources."""


class Lag(msgspec.Struct, frozen=True, kw_only=True):
    """How far a consumer is behind the head."""

    changes: int
    """How many changes it has not committed."""
    seconds: float
    """The age of the oldest of them."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease of a consumer."""

    token: str
    """The token that the member sends with its commits."""
    until: datetime
    """When the lease ends, unless it is extended."""
    offset: NextPosition
    """A position: an offset, or a text within the rows of a version."""
    revision: int
    """The revision of the consumer; its ETag."""


class LeaseHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The member that leases the consumer."""

    member: str
    """The name of the member."""
    until: datetime
    """When the lease ends, unless it is extended."""


class MaxLag(msgspec.Struct, frozen=True, kw_only=True):
    """How far behind the head a consumer may be and still keep the changes after its position; null for no limit."""

    changes: int | None = None
    """The most changes."""
    seconds: int | None = None
    """The greatest age of the oldest change."""


ReaderPosition = int | str
