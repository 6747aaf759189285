"""Splits of an input, which tasks decode in parallel."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pyarrow.parquet as pq

from app.kernel.codecs.arrow.parquet_rows import open_parquet
from app.kernel.format.errors import MalformedBody
from app.kernel.format.rows.formats import Format, Source
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits


class Split(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an input; the whole input if neither member is set.

    `byte_range`: [start, end) of NDJSON; the split has the lines that start in it. `row_groups`: those of a Parquet
    file.
    """

    byte_range: tuple[int, int] | None = None
    row_groups: tuple[int, ...] | None = None


def plan_splits(
    form: Format,
    source: Source,
    size_bytes: int,
    target_bytes: int,
    *,
    limits: RowLimits = DEFAULT_LIMITS,
) -> list[Split]:
    """Splits of about `target_bytes` that together cover the input; CSV, Arrow and JSON are one split.

    `source`: seekable; read for Parquet only, whose row groups stay whole. `size_bytes`: its size.
    Raises MalformedBody, TooManyRows for a Parquet file with more rows than the limit.
    """
    if size_bytes == 0:
        raise MalformedBody("the body is empty")
    match form:
        case Format.NDJSON:
            starts = [*range(0, size_bytes, target_bytes), size_bytes]
            return [Split(byte_range=ends) for ends in pairwise(starts)]
        case Format.PARQUET:
            metadata = open_parquet(source).metadata
            limits.check_rows(metadata.num_rows)
            return _row_group_splits(metadata, target_bytes)
        case _:
            return [Split()]


def _row_group_splits(metadata: pq.FileMetaData, target_bytes: int) -> list[Split]:
    splits: list[Split] = []
    group: list[int] = []
    size = 0
    for number in range(metadata.num_row_groups):
        group.append(number)
        size += max(metadata.row_group(number).total_byte_size, 0)
        if size >= target_bytes:
            splits.append(Split(row_groups=tuple(group)))
            group, size = [], 0
    # A file without row groups still has columns to check.
    return [*splits, Split(row_groups=tuple(group))] if group or not splits else splits
