"""Positions in a feed: its bounds, and where a reader starts: an offset, a name, or a commit's first change."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import TypeAlias

import msgspec

from app.format.errors import FieldError, InvalidRequest, OffsetAhead, OffsetExpired


class FeedBounds(msgspec.Struct, frozen=True, kw_only=True):
    """The readable part of a feed: offsets [earliest, next_offset)."""

    earliest: int
    next_offset: int

    def checked(self, since: int) -> int:
        """A position that the feed can be read from. Raises OffsetAhead, OffsetExpired."""
        if since > self.next_offset:
            raise OffsetAhead(
                f"the position {since} is beyond the head at {self.next_offset}: it is of another or a recreated "
                "dataset; start again from `earliest`, or follow from `now`",
                since=since,
                head=self.next_offset,
            )
        if since < self.earliest:
            raise OffsetExpired(
                f"changes before {self.earliest} are kept no longer: read the table and go on from there, or from "
                "`earliest`, knowing that changes are missing",
                since=since,
                earliest=self.earliest,
            )
        return since


class StartingPosition(str, Enum):
    """A position that is named: the first change that is kept, or the head."""

    EARLIEST = "earliest"
    NOW = "now"


class FromVersion(msgspec.Struct, frozen=True):
    """The position of the first change that was committed at a version or later."""

    version: int


class FromTime(msgspec.Struct, frozen=True):
    """The position of the first change that was committed at a time or later."""

    time: datetime


FeedStart: TypeAlias = int | StartingPosition | FromVersion | FromTime
"""Where a reader of a feed starts. `FromVersion` and `FromTime` are looked up in the commits of the dataset."""


def resolve_position(wanted: int | StartingPosition, bounds: FeedBounds) -> int:
    """A position that the feed can be read from. Raises OffsetAhead, OffsetExpired."""
    if wanted is StartingPosition.EARLIEST:
        return bounds.earliest
    if wanted is StartingPosition.NOW:
        return bounds.next_offset
    return bounds.checked(wanted)


def one_start(
    since: int | StartingPosition | None,
    since_version: int | None,
    since_time: datetime | None,
    *,
    name: str = "since",
) -> FeedStart | None:
    """The start that a request names; None if it names none. `name`: what the request calls an offset.

    Raises InvalidRequest if it names more than one.
    """
    members = {
        name: since,
        "since_version": None if since_version is None else FromVersion(since_version),
        "since_time": None if since_time is None else FromTime(since_time),
    }
    requested = {member: start for member, start in members.items() if start is not None}
    if len(requested) > 1:
        first, second, *_ = requested
        detail = f"expected one of {', '.join(f'`{member}`' for member in members)}; remove it or `{first}`"
        raise InvalidRequest(f"{second}: {detail}", [FieldError(pointer=f"/{second}", detail=detail)])
    return next(iter(requested.values()), None)
