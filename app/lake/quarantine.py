"""Records that were set aside: what the catalogue keeps of them."""

from __future__ import annotations

import msgspec


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of bad records of one write, each with its position in the write, its faults and its payload."""

    path: str
    size_bytes: int
    checksum: str
    row_count: int
