"""The position of the live row of a key."""

from __future__ import annotations

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
