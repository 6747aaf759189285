"""Archives of the timeline, as values."""

from __future__ import annotations

import msgspec


class TimelineArchive(msgspec.Struct, frozen=True, kw_only=True):
    """A file of archived instants, in the order of their ids."""

    path: str
    first_instant: str
    last_instant: str
    row_count: int
    size_bytes: int
    checksum: str
