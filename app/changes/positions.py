"""Consumers as their readers see and move them, and the rules of that."""

from __future__ import annotations

from enum import Enum

from app.changes.values import FeedBounds
from app.format.errors import FieldError, InvalidRequest


class StartingPosition(str, Enum):
    """A position that is named: the first change that is kept, or the head."""

    EARLIEST = "earliest"
    NOW = "now"


def resolve_position(wanted: int | StartingPosition, bounds: FeedBounds) -> int:
    """A position that the feed can be read from. Raises OffsetAhead, OffsetExpired."""
    if wanted is StartingPosition.EARLIEST:
        return bounds.earliest
    if wanted is StartingPosition.NOW:
        return bounds.next_offset
    return bounds.checked(wanted)


def _invalid_offset(detail: str) -> InvalidRequest:
    return InvalidRequest(f"/offset: {detail}", [FieldError(pointer="/offset", detail=detail)])
