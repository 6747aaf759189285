"""What a clean needs to know of a dataset's past, and what came of it."""

from __future__ import annotations

import msgspec


class TimelineArchive(msgspec.Struct, frozen=True, kw_only=True):
    """A file of instants that have left the catalogue, in the order of their ids, from the first to the last."""

    path: str
    first_instant: str
    last_instant: str
    row_count: int
    size_bytes: int
    checksum: str
