"""The manifest of a backup, and the error of all that can go wrong with one."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from app.infra.db.copying import SequencePosition

FORMAT: Final = 1
"""The version of the layout of backups."""


class BackupError(Exception):
    """A backup cannot be made or restored. The message is for the operator."""


class TableContent(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a table: a gzip file in the text format of COPY, with these columns. `sha256`: of the file."""

    name: str
    columns: tuple[str, ...]
    rows: int
    file: str
    size_bytes: int
    sha256: str


class BackupManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a backup contains. It is written last: a folder without one is no backup.

    `revision`: the last migration of the schema. `taken_at`: the time of the snapshot, by the clock of the database.
    `tables`: in an order in which rows can be added.
    """

    format: int
    release: str
    revision: str
    taken_at: datetime
    storage_uri: str
    storage_copied: bool
    tables: tuple[TableContent, ...]
    sequences: tuple[SequencePosition, ...]

    @property
    def rows(self) -> int:
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)
