"""Partitions of a dataset as they come to be done: marks, and the events that tell of them."""

from __future__ import annotations

from datetime import datetime
from enum import Enum

import msgspec


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a partition: the last version whose write changed it, and whether it has been done since.

    `done_version`: the version that has all of its data; null, as is `done_at`, while it is open.
    """

    path: str
    changed_version: int
    changed_at: datetime
    done_version: int | None
    done_at: datetime | None


class PartitionEventKind(str, Enum):
    """What became of a partition: all its data was there, or data came to it after that."""

    DONE = "done"
    REOPENED = "reopened"


class DoneReason(str, Enum):
    """Why a partition is done: its writers said so, or nothing was written to it for long enough."""

    ENDED = "ended"
    IDLE = "idle"


class PartitionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Event `number` (from 0, none left out) of a dataset.

    `version`: the one that has all data of a partition that is done, or that brought more to one that was.
    `reason`: null unless it is done.
    """

    number: int
    kind: PartitionEventKind
    partition: str
    version: int
    reason: DoneReason | None
    at: datetime


class PartitionEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events [since, next_since), of `count` that there are."""

    items: tuple[PartitionEvent, ...]
    next_since: int
    count: int


class MarkerWork(msgspec.Struct, frozen=True, kw_only=True):
    """A marker that is not as it should be: it says `version`, done at `done_at`, or goes where these are null."""

    path: str
    version: int | None
    done_at: datetime | None
