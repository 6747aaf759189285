"""The position of the live row of a key."""

from __future__ import annotations

import msgspec


class LiveKey(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: its number among the searched files. `position`: its row there. Both are None for a row of a log.

    `version`, `offset`: the commit and the change that gave the row its values, None where unknown.
    """

    file: int | None
    position: int | None
    version: int | None
    offset: int | None
