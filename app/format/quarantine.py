"""Records that were set aside: what the catalogue keeps of them."""

from __future__ import annotations

import msgspec

from app.format.dataset import DatasetDefinition
from app.format.rows.staging import StagedFile


class QuarantineFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of bad records of one write, each with its position, its faults and its payload.

    `first_row`: the row of the write from which positions in the file count.
    """

    path: str
    size_bytes: int
    checksum: str
    row_count: int
    first_row: int = 0


class DecodedInput(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a raw input: its rows, and the records that were set aside.

    `definition`: the dataset under the schema that the rows brought, where it is another.
    """

    staged: tuple[StagedFile, ...]
    quarantined: tuple[QuarantineFile, ...] = ()
    definition: DatasetDefinition | None = None
