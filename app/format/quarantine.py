"""Quarantined records: their entries in the catalogue."""

from __future__ import annotations

import msgspec

from app.format.dataset import DatasetDefinition
from app.format.rows.staged import StagedFile


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of bad records of one write, each with its position, its errors and its payload.

    `first_row`: the row of the write to which positions in the file are relative.
    """

    path: str
    size_bytes: int
    checksum: str
    row_count: int
    first_row: int = 0


class DecodedInput(msgspec.Struct, frozen=True, kw_only=True):
    """The result of decoding a raw input: its rows, and the quarantined records.

    `definition`: the dataset under the schema that the input changed it to, where it did.
    """

    staged: tuple[StagedFile, ...]
    quarantined: tuple[QuarantineFile, ...] = ()
    definition: DatasetDefinition | None = None
