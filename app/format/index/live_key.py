"""Where the live row of a key is."""

from __future__ import annotations

import msgspec


class LiveKey(msgspec.Struct, frozen=True, kw_only=True):
    """`file`: its number among the files searched, `position` in it; both None for a row that a log has put there.

    `version`, `offset`: the commit and the change that gave the row its values, None where that is not known.
    """

    file: int | None
    position: int | None
    version: int | None
    offset: int | None
