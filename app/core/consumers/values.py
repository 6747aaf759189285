"""Consumers as readers see them, and the rules for moving their positions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import msgspec

from app.core.changes.positions import (
    FeedBounds,
    ReaderStart,
    SnapshotPosition,
    StartingPosition,
    resolve_position,
)
from app.core.consumers.errors import ConsumerLeased, ConsumerManaged, LeaseLost
from app.core.consumers.followers import Consumer
from app.kernel.format.errors import FieldError, InvalidRequest

_NATURAL: Final = msgspec.Meta(ge=0, le=2**63 - 1)
_SECONDS: Final = msgspec.Meta(ge=0, le=2**31 - 1)
_EXPECTED_START: Final = (
    "expected an offset, `earliest`, `now` or `snapshot`, or `since_version` or `since_time` instead"
)
_BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class MaxLag(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far behind the head a consumer may be and still keep the changes after its position; null for no limit."""

    changes: Annotated[int, _NATURAL] | None = None
    """The most changes."""
    seconds: Annotated[int, _SECONDS] | None = None
    """The greatest age of the oldest change."""


class ConsumerPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A position as it is stored: the offset, and where it is within the rows of the version before that offset."""

    offset: int
    snapshot: SnapshotPosition | None = None

    @classmethod
    def stored(cls, offset: int, snapshot: str | None) -> ConsumerPlace:
        """The position in two columns."""
        return cls(offset=offset, snapshot=None if snapshot is None else SnapshotPosition.of(snapshot))

    @property
    def snapshot_text(self) -> str | None:
        """What the column of the place in a version holds."""
        return None if self.snapshot is None else self.snapshot.text

    @property
    def position(self) -> int | SnapshotPosition:
        """Where it continues."""
        return self.offset if self.snapshot is None else self.snapshot


class ConsumerChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of a consumer: the position that it commits, its bounds, or both.

    A position goes forward, unless `reset`. `lease`: the token of the lease under which it is committed.
    """

    offset: ReaderStart | None = None
    max_lag: MaxLag | msgspec.UnsetType | None = msgspec.UNSET
    reset: bool = False
    lease: str | None = None


class ExpectedRevision(msgspec.Struct, frozen=True, kw_only=True):
    """The condition of a change: the consumer does not exist (`absent`), or is at `revision`."""

    absent: bool = False
    revision: int | None = None


class ConsumerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A consumer, and its place in the feed by the database's clock.

    `behind_seconds`: the age of the oldest change that it has not committed, 0 if there is none. `lease_seconds`: the
    rest of its lease, 0 if it is not leased.
    """

    consumer: Consumer
    bounds: FeedBounds
    behind_seconds: float
    lease_seconds: float

    @property
    def behind_changes(self) -> int:
        """How many changes it has not committed."""
        return self.bounds.next_offset - self.consumer.position

    @property
    def expired(self) -> bool:
        """Whether changes that it has not committed were deleted."""
        return self.consumer.position < self.bounds.earliest


class ConsumerLease(msgspec.Struct, frozen=True, kw_only=True):
    """The lease of a consumer to a member, who sends the token with its commits."""

    token: str
    until: datetime
    position: int | SnapshotPosition
    revision: int


def initial_place(start: int | StartingPosition | ConsumerPlace | None, bounds: FeedBounds) -> ConsumerPlace:
    """The position of a new consumer. Raises InvalidRequest, OffsetAhead, OffsetExpired."""
    if start is None:
        raise _invalid_offset(_EXPECTED_START)
    return _resolved(start, bounds)


def next_place(
    consumer_status: ConsumerStatus,
    change: ConsumerChange,
    start: int | StartingPosition | ConsumerPlace | None,
) -> ConsumerPlace:
    """The position after a change to `start`. Raises InvalidRequest, OffsetAhead, OffsetExpired."""
    consumer = consumer_status.consumer
    at = ConsumerPlace(offset=consumer.position, snapshot=consumer.snapshot)
    if start is None:
        if change.max_lag is msgspec.UNSET or change.reset:
            raise _invalid_offset(_EXPECTED_START)
        return at
    place = _resolved(start, consumer_status.bounds)
    if not change.reset and not _follows(place, at):
        least = at.offset if at.snapshot is None else f"`{at.snapshot.text}`"
        raise _invalid_offset(f"expected {least} or more; to go back, send `reset: true` as well")
    return place


def _resolved(start: int | StartingPosition | ConsumerPlace, bounds: FeedBounds) -> ConsumerPlace:
    if isinstance(start, ConsumerPlace):
        return start
    return ConsumerPlace(offset=resolve_position(start, bounds))


def _follows(place: ConsumerPlace, at: ConsumerPlace) -> bool:
    """Whether a position is at another or after it. The rows of a version are before the changes after it."""
    if place.snapshot is None:
        return place.offset >= at.offset
    if at.snapshot is None or place.snapshot.version != at.snapshot.version:
        return False
    return (place.snapshot.group, place.snapshot.row) >= (at.snapshot.group, at.snapshot.row)


def _invalid_offset(detail: str) -> InvalidRequest:
    return InvalidRequest(f"offset: {detail}", [FieldError(pointer="/offset", detail=detail)])


def lease_token(consumer: Consumer) -> str:
    """The token of the latest lease of the consumer, unique also among those of a deleted consumer of the same name."""
    created_micros = (consumer.created_at - _BEGINNING) // timedelta(microseconds=1)
    return f"{created_micros:x}-{consumer.lease_epoch:x}"


def check_lease(consumer_status: ConsumerStatus, token: str | None) -> None:
    """Raises ConsumerLeased if another member leases the consumer, LeaseLost for the token of an earlier lease.

    A lease that has expired stays valid until another member takes one: no one else has moved the position.
    """
    if token is None and consumer_status.lease_seconds > 0:
        raise consumer_leased(consumer_status)
    if token is not None and (
        consumer_status.consumer.member is None or token != lease_token(consumer_status.consumer)
    ):
        raise LeaseLost("the lease was released, or another member has taken it since; nothing was changed")


def consumer_managed(consumer: Consumer) -> ConsumerManaged:
    """The error for a reader's change of a position that the service moves."""
    kind = consumer.kind.value
    return ConsumerManaged(
        f"{consumer.name!r} is the position of {'an' if kind[0] in 'aeiou' else 'a'} {kind}, which moves it and ends "
        "with it; nothing was changed",
        kind=kind,
    )


def consumer_leased(consumer_status: ConsumerStatus) -> ConsumerLeased:
    """The error for a consumer that another member leases, with the rest of the lease."""
    consumer = consumer_status.consumer
    return ConsumerLeased(
        f"{consumer.member!r} holds the consumer; send the token of its lease, or wait until it has run out",
        member=consumer.member,
        until=consumer.lease_until,
        retry_after_seconds=int(consumer_status.lease_seconds) + 1,
    )
