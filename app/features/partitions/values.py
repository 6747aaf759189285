"""Partitions that are done: marks and events."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated

import msgspec


class PartitionMark(msgspec.Struct, frozen=True, kw_only=True):
    """A partition, and whether it is done."""

    path: Annotated[str, msgspec.Meta(examples=["day=2026-11-21"])]
    """Its path."""
    changed_version: Annotated[int, msgspec.Meta(examples=[7])]
    """The last version whose write changed it."""
    changed_at: datetime
    """When that was committed."""
    done_version: Annotated[int, msgspec.Meta(examples=[7])] | None
    """The version that has all of its data; null while it is open."""
    done_at: datetime | None
    """When it was done; null while it is open."""


class PartitionEventKind(str, Enum):
    """The kind of an event: the partition is done, or data was added to it after that."""

    DONE = "done"
    REOPENED = "reopened"


class DoneReason(str, Enum):
    """Why a partition is done: on request, also by a write, or because nothing was written to it for long enough."""

    ENDED = "ended"
    IDLE = "idle"


class PartitionEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of a partition: it is done, or open again."""

    number: Annotated[int, msgspec.Meta(examples=[3])]
    """Its number, from 0, without gaps."""
    kind: PartitionEventKind
    """What happened."""
    partition: Annotated[str, msgspec.Meta(examples=["day=2026-11-21"])]
    """The path of the partition."""
    version: int
    """The version that has all of its data, or the version that added data to it after that."""
    reason: DoneReason | None
    """Why it is done; null for one that was reopened."""
    at: Annotated[datetime, msgspec.Meta(examples=["2026-11-21T10:00:00Z"])]
    """When the event was recorded."""


class PartitionEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Events [since, next_since), and the `count` of all events."""

    items: tuple[PartitionEvent, ...]
    next_since: int
    count: int


class MarkerWork(msgspec.Struct, frozen=True, kw_only=True):
    """An outdated marker: it is to have `version` and `done_at`, or to be removed where these are None."""

    path: str
    version: int | None
    done_at: datetime | None
