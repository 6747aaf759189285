"""Scans: the request and the plan of a table that its reader fetches in parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum
from typing import Annotated, Final, TypeAlias

import msgspec

from app.kernel.commit.write_rules import INT64_MAX
from app.kernel.format.schema.schema import Schema

KEPT_SECONDS: Final = 3_600
KEPT_SECONDS_MIN: Final = 60
KEPT_SECONDS_MAX: Final = 24 * 3_600
_COLUMNS_MAX: Final = 10_000
_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]


class ScanQuery(str, Enum):
    """What a scan reads: the table, or only the rows of base files, without merging the logs of merge_on_read."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


class PartFormat(str, Enum):
    """What a part is: a Parquet file of the table, or rows that the service merges, as an Arrow IPC stream."""

    PARQUET = "parquet"
    ARROW = "arrow"


class CreateScan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to scan."""

    query: ScanQuery = ScanQuery.SNAPSHOT
    """`snapshot`: the table. `read_optimized`: only its base files."""
    version: _Version | None = None
    """The version to read; by default the latest."""
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """A time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""
    columns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1, max_length=_COLUMNS_MAX)] | None = None
    """The columns to read, in this order; by default all."""
    partitions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the rows of partitions that match one; by default all."""
    keep_seconds: Annotated[int, msgspec.Meta(ge=KEPT_SECONDS_MIN, le=KEPT_SECONDS_MAX)] = KEPT_SECONDS
    """For how long the version is kept at least."""


class PlannedPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a plan. `checksum`: of the file that it is; None if its rows have to be merged.

    `rows`: None where only reading them shows how many there are. `size_bytes`: of the files to read; None where they
    have rows that the reader may not see.
    """

    name: str
    checksum: str | None
    rows: int | None
    size_bytes: int | None


class PlannedScan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan. `schema`: that of the rows. `columns`, `partitions`: of the request, which links have as options.

    `kept_seconds`: for how long the version is kept.
    """

    version: int
    schema: Schema
    columns: tuple[str, ...] | None
    partitions: tuple[str, ...] | None
    kept_seconds: int
    parts: Sequence[PlannedPart]


class FileOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is read of a file. The link of the part has these options."""

    columns: tuple[str, ...] | None = None
    """The columns that the file must have, comma-separated or repeated; all by default. All of its columns are sent."""


class PartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is returned of the rows of a part. The link of the part has these options."""

    columns: tuple[str, ...] | None = None
    """The columns of the rows, comma-separated or repeated; all by default."""
    partitions: tuple[str, ...] | None = None
    """Globs of partition paths, repeated: the rows of partitions that match one."""


def link_options(
    columns: Sequence[str] | None, partitions: Sequence[str] | None = None
) -> list[tuple[str, str]]:
    """The options in the link of a part."""
    return [
        *(("columns", name) for name in columns or ()),
        *(("partitions", glob) for glob in partitions or ()),
    ]
