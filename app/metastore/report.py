"""What a Hive metastore is told of a dataset at a version."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.format.definition.hive_table import HiveColumns


class MetastoreRefused(Exception):
    """The metastore does not take what it is told, or cannot be reached; the message says why."""


class FileFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The data files of a table, or of a partition of it. `rows`: those of base files that were not taken out."""

    files: int
    rows: int
    size_bytes: int
    written_at: datetime | None


class HiveTable(msgspec.Struct, frozen=True, kw_only=True):
    """The table of a dataset. `folder`: its data folder below the storage root."""

    database: str
    table: str
    tenant_id: str
    dataset_id: str
    dataset: str
    schema_id: int
    columns: HiveColumns
    folder: str


class HivePartition(msgspec.Struct, frozen=True, kw_only=True):
    """A partition with the values of its columns. `folder`: below that of the table. No `figures`: it is gone."""

    values: tuple[str, ...]
    folder: str
    figures: FileFigures | None


class HiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset at a version. `figures`: of all files of one without partitions.

    `retained`: the values of partitions that were told of before and stay; there are these and `partitions`, and no
    others. None: `partitions` are only those that changed since what was reported last.
    """

    table: HiveTable
    version: int
    committed_at: datetime | None
    figures: FileFigures | None
    partitions: Sequence[HivePartition]
    retained: Sequence[tuple[str, ...]] | None
