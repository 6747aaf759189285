"""Reports of a dataset at a version to a Hive metastore."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from app.kernel.format.definition.hive_table import HiveColumns


class MetastoreRefused(Exception):
    """The metastore rejected a report, or cannot be reached; the message says why."""


class FileFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The data files of a table, or of a partition of it. `rows`: the live rows of base files."""

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
    """A partition with the values of its columns. `folder`: below that of the table. `figures`: None once removed."""

    values: tuple[str, ...]
    folder: str
    figures: FileFigures | None


class HiveReport(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset at a version. `figures`: of all files of one without partitions.

    `retained`: the values of partitions that were reported before and stay: the table has these and `partitions` only.
    None: `partitions` are those that changed since the last report.
    """

    table: HiveTable
    version: int
    committed_at: datetime | None
    figures: FileFigures | None
    partitions: Sequence[HivePartition]
    retained: Sequence[tuple[str, ...]] | None
