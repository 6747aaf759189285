"""Quarantined records: their entries in the catalogue."""

from __future__ import annotations

import msgspec


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of bad records of one write, each with its position, its errors and its payload.

    `first_row`: the row of the write to which positions in the file are relative.
    """

    path: str
    size_bytes: int
    checksum: str
    row_count: int
    first_row: int = 0
