"""Positions in a feed: its bounds, and where a reader starts: an offset, a name, or a commit's first change."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Final, TypeAlias, TypeVar

import msgspec

from app.core.changes.errors import OffsetAhead
from app.core.timeline.errors import OffsetExpired
from app.kernel.format.errors import FieldError, InvalidRequest


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


class SnapshotPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A position in the rows of a version, with which a feed starts that continues with the changes after it.

    `version`: None for the latest, from the first row on. `group`: the place of a file group among those of the
    version, by name. `row`: the number of a live row of that group.
    """

    version: int | None = None
    group: int = 0
    row: int = 0

    @classmethod
    def of(cls, text: str) -> SnapshotPosition:
        """The position in a text that matches `SNAPSHOT_PATTERN`."""
        _, *numbers = text.split(":")
        if not numbers:
            return cls()
        version, group, row = (min(int(number), _INT64_MAX) for number in numbers)
        return cls(version=version, group=group, row=row)

    def is_before(self, other: SnapshotPosition) -> bool:
        """Whether it is before another one of the same version."""
        return (self.group, self.row) < (other.group, other.row)

    @property
    def text(self) -> str:
        """The position as requests and responses write it."""
        if self.version is None:
            return SNAPSHOT
        return f"{SNAPSHOT}:{self.version}:{self.group}:{self.row}"


SNAPSHOT: Final = "snapshot"
SNAPSHOT_READER: Final = "snapshot"
"""The reader of the leases of versions that readers of feeds start with, and of the feed after them."""
SNAPSHOT_PATTERN: Final = rf"{SNAPSHOT}(:[0-9]{{1,19}}){{3}}|{SNAPSHOT}"
"""A regular expression for the texts of snapshot positions."""
_INT64_MAX: Final = 2**63 - 1

ReaderStart: TypeAlias = FeedStart | SnapshotPosition
"""Where a reader starts that may read the rows of a version before the changes after it."""
FeedPosition: TypeAlias = int | StartingPosition | SnapshotPosition
"""Where a page of a feed starts."""

_Since = TypeVar("_Since")


def resolve_position(position: int | StartingPosition, bounds: FeedBounds) -> int:
    """A position that the feed can be read from. Raises OffsetAhead, OffsetExpired."""
    if position is StartingPosition.EARLIEST:
        return bounds.earliest
    if position is StartingPosition.NOW:
        return bounds.next_offset
    return bounds.checked(position)


def version_ahead(version: int, head_version: int) -> OffsetAhead:
    """The error for a position in the rows of a version that does not exist yet."""
    return OffsetAhead(
        f"version {version} of the position is beyond the head at version {head_version}: it is of another or a "
        "recreated dataset; start again from `snapshot`",
        since_version=version,
        head_version=head_version,
    )


def one_start(
    since: _Since | None,
    since_version: int | None,
    since_time: datetime | None,
    *,
    name: str = "since",
) -> _Since | FromVersion | FromTime | None:
    """The start that a request names; None if it names none. `name`: what the request calls an offset.

    Raises InvalidRequest if it names more than one.
    """
    members: dict[str, _Since | FromVersion | FromTime | None] = {
        name: since,
        "since_version": None if since_version is None else FromVersion(since_version),
        "since_time": None if since_time is None else FromTime(since_time),
    }
    starts = {member: start for member, start in members.items() if start is not None}
    if len(starts) > 1:
        first, second, *_ = starts
        detail = f"expected one of {', '.join(f'`{member}`' for member in members)}; remove it or `{first}`"
        raise InvalidRequest(f"{second}: {detail}", [FieldError(pointer=f"/{second}", detail=detail)])
    return next(iter(starts.values()), None)
