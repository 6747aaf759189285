"""Staged input: rows that fit the schema, on storage, already split by slot.

A slot is one bucket of one partition. Each record batch of a staged file belongs to one slot, so that the task
that merges a bucket opens just its own batches. Small writes are staged by the API, large ones by Spark tasks:
the same files either way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from app.lake.dataset import DatasetDefinition
from app.lake.partition import partition_codes
from app.lake.record_key import bucket_numbers
from app.lake.rows.formats import Format

ROW_COLUMN: Final = "_hw_row"
JOB_COLUMN: Final = "_hw_job"


class Slot(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One bucket of one partition."""

    partition_path: str
    bucket: int


class StagedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """Record batch number `index` of a staged file: `rows` rows of one slot."""

    slot: Slot
    index: int
    rows: int


class StagedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An immutable Arrow IPC file of checked rows."""

    path: str
    size_bytes: int
    checksum: str
    rows: int
    batches: tuple[StagedBatch, ...]


class RawInput(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on storage that a worker decodes: a large body or an upload."""

    path: str
    size_bytes: int
    checksum: str
    format: Format
    gzip: bool = False


def split_by_slot(
    rows: pa.Table, dataset: DatasetDefinition, first_row: int
) -> Iterator[tuple[Slot, pa.RecordBatch]]:
    """Splits checked rows by slot, keeping their order, with each row's position in its write (int64) beside it.

    `rows`: the dataset's columns. `first_row`: the position in the write of the first of them.
    """
    if rows.num_rows == 0:
        return
    positions = pa.array(np.arange(first_row, first_row + rows.num_rows, dtype=np.int64))
    rows = rows.append_column(pa.field(ROW_COLUMN, pa.int64(), nullable=False), positions)
    partitions, paths = partition_codes(rows, dataset.partition_by)
    buckets = bucket_numbers(rows, dataset.record_key, dataset.bucket.count)
    codes = partitions.astype(np.int64) * dataset.bucket.count + buckets
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    combined = rows.combine_chunks()
    for indices in np.split(order, ends):
        code = int(codes[indices[0]])
        slot = Slot(partition_path=paths[code // dataset.bucket.count], bucket=code % dataset.bucket.count)
        whole = len(indices) == rows.num_rows
        part = combined if whole else combined.take(pa.array(indices))
        yield slot, _one_batch(part)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) != 1:
        raise ValueError(f"{table.num_rows} rows do not fit one record batch")
    return batches[0]
