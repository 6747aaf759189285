"""What a key has: the position of its live row, or its tombstone."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec


class RowOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What gave a row its values."""

    version: int | None
    """The version that gave it its values; null where not known."""
    offset: int | None
    """The offset of the change that gave it its values; null where not known."""


class LiveKey(RowOrigin, frozen=True, kw_only=True):
    """`file`: its number among the searched files. `position`: its row there. Both are None for a row of a log."""

    file: int | None
    position: int | None


class KeyTombstone(msgspec.Struct, frozen=True, kw_only=True):
    """The tombstone of a key: rows with a lesser ordering value change nothing."""

    ordering_value: Annotated[Any, msgspec.Meta(examples=["2026-11-21T12:00:00Z"])]
    """The ordering value of the delete."""
    version: int | None
    """The version of the delete; null where not known."""
    until: datetime
    """The time of the last commit whose rows are compared with it."""
