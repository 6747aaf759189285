"""Partitions of a dataset as they come to be done: marks, and the events that tell of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from enum import Enum
from typing import Protocol

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


class PartitionMarks(Protocol):
    """Marks of partitions, and events. Whatever changes them has first looked at all commits that there are."""

    def catch_up(self, tenant_id: str, dataset_id: str, *, idle_seconds: float | None) -> float | None:
        """Notes what commits changed since the last look, and which partitions have been idle for so long.

        Returns how many seconds it is until the next one has been; None if none will be by itself.
        """
        ...

    def end(self, tenant_id: str, dataset_id: str, partitions: Sequence[str]) -> list[PartitionMark]:
        """Marks partitions as done, in the order given; those that are already stay as they are.

        Raises NotFound (dataset gone), InvalidRequest for a partition that there is not, or whose writes nobody sees
        before a compaction.
        """
        ...

    def of(self, tenant_id: str, dataset_id: str, paths: Collection[str]) -> dict[str, PartitionMark]:
        """The marks of these partitions, as far as they have any."""
        ...

    def events(self, tenant_id: str, dataset_id: str, since: int, limit: int) -> PartitionEvents:
        """Raises OffsetAhead."""
        ...

    def settle_markers(
        self,
        tenant_id: str,
        dataset_id: str,
        settle: Callable[[MarkerWork], None],
        *,
        wanted: bool,
        limit: int,
    ) -> int:
        """Has up to `limit` markers settled that are not as they should be; returns how many there were.

        They should be there for partitions that are done, if `wanted`, else for none. Each is settled by one caller at
        a time. Whatever `settle` raises leaves that marker, and those after it, for another time.
        """
        ...

    def clear(self, tenant_id: str, dataset_id: str) -> None:
        """Removes the marks. Events stay, and later ones are numbered on."""
        ...
