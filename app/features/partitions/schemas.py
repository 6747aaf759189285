"""The JSON of partitions: what requests send and what responses hold."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.core.changes.position_parameters import PositionText
from app.features.partitions.values import PartitionEvent, PartitionEvents, PartitionMark
from app.http.parameters.query_parameters import PAGE_SIZE_MAX


class EndPartitions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Partitions that receive no more data."""

    partitions: Annotated[list[str], msgspec.Meta(min_length=1, max_length=PAGE_SIZE_MAX)]
    """Their paths."""


class PartitionMarkList(msgspec.Struct, frozen=True, kw_only=True):
    """Partitions in the order of the request."""

    items: list[PartitionMark]
    """The partitions."""


class PartitionEventPage(msgspec.Struct, frozen=True, kw_only=True):
    """Events of partitions in order."""

    events: list[PartitionEvent]
    """The events of this page."""
    next_since: int
    """The next call's `since`."""
    pending: int
    """How many events follow the page."""


class ReadPartitionEventsOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `read_partition_events`."""

    since: PositionText = "0"
    """The number of the first event to return; `earliest` for the first one, `now` for the next one to come."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_SIZE_MAX)] = 100
    """Events on a page, at most."""


def event_page(events: PartitionEvents) -> PartitionEventPage:
    """The JSON of a page of events."""
    return PartitionEventPage(
        events=list(events.items), next_since=events.next_since, pending=events.count - events.next_since
    )
