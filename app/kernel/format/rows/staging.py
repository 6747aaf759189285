"""Staged input: validated rows, split by slot.

A slot is one bucket of one partition. Each record batch of a staged file belongs to one slot, so that the task that
merges a bucket opens only its own batches. The API stages small writes, Spark tasks stage large ones; the files are the
same. The rows of the smallest writes are one batch in the order of their slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import Slot
from app.kernel.format.operation import Operation
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.record_key import bucket_numbers
from app.kernel.format.rows.staged import StagedBatch

# More rows of a partition are staged in this number of buckets, where buckets are halved.
_MANY_ROWS: Final = 1_024
_STAGED_BUCKETS: Final = 8
ROW_COLUMN: Final = "_hw_row"
JOB_COLUMN: Final = "_hw_job"


def with_ops(rows: pa.Table, operation: Operation, dataset: DatasetDefinition) -> pa.Table:
    """The rows with `_hw_op` in front: the operation of each on its key. Rows of a changelog already have it.

    An append or correction sets the row of its key, a retraction deletes the key. A row of an upsert whose delete
    marker is true is a retraction.
    """
    if OP_COLUMN in rows.column_names:
        return rows
    op = Op.RETRACT if operation is Operation.DELETE else Op.APPEND
    ops = np.full(rows.num_rows, op, dtype=np.uint8)
    if operation is Operation.UPSERT and dataset.delete_marker is not None:
        markers = pc.fill_null(rows.column(dataset.delete_marker), False)
        ops[markers.to_numpy()] = Op.RETRACT
    return rows.add_column(0, OP_FIELD, pa.array(ops))


def split_by_slot(
    rows: pa.Table, dataset: DatasetDefinition, first_row: int
) -> Iterator[tuple[Slot, pa.RecordBatch]]:
    """Splits validated rows by slot, keeping their order, and adds each row's position in its write (int64).

    `rows`: `_hw_op` and the dataset's columns. `first_row`: the position in the write of the first of them.
    """
    if rows.num_rows == 0:
        return
    rows_by_slot, parts = in_slot_order(rows, dataset, first_row)
    whole = _one_batch(rows_by_slot)
    start = 0
    for part in parts:
        yield part.slot, whole.slice(start, part.rows)
        start += part.rows


def in_slot_order(
    rows: pa.Table, dataset: DatasetDefinition, first_row: int = 0
) -> tuple[pa.Table, list[StagedBatch]]:
    """What `split_by_slot` returns, in one table; and its parts."""
    rows = _with_positions(rows, first_row)
    parts = list(_parts(rows, dataset)) if rows.num_rows else []
    if len(parts) > 1:
        order = pa.array(np.concatenate([part.indices for part in parts]))
        # A batch is gathered in half the time that its table takes.
        rows = pa.Table.from_batches([_one_batch(rows).take(order)])
    return rows, [
        StagedBatch(slot=part.slot, index=index, rows=len(part.indices), numbers=part.numbers)
        for index, part in enumerate(parts)
    ]


def _with_positions(rows: pa.Table, first_row: int) -> pa.Table:
    positions = pa.array(np.arange(first_row, first_row + rows.num_rows, dtype=np.int64))
    return rows.append_column(pa.field(ROW_COLUMN, pa.int64(), nullable=False), positions)


class _Part(NamedTuple):
    """The rows of a slot: their places, ascending, and of few rows the distinct numbers of their keys."""

    slot: Slot
    indices: np.ndarray
    numbers: tuple[int, ...] | None = None


def _parts(rows: pa.Table, dataset: DatasetDefinition) -> Iterator[_Part]:
    """The rows by slot. There is one row at least.

    Where buckets are halved, those of the table are not known here, and may change before the rows are merged. The rows
    of a partition are staged in one bucket, or in several if they are many. A task takes its own of them.
    """
    bucket = dataset.bucket
    # Where keys are unique across partitions, a key is searched in all partitions.
    by = () if bucket.mode is BucketMode.KEY_DYNAMIC else dataset.partition_by
    partitions, paths = partition_codes(rows, by)
    numbers = bucket_numbers(rows, dataset.bucket_key, bucket.segments, bucket.function)
    counts = np.full(len(paths), bucket.segments)
    if bucket.halves:
        many = np.bincount(partitions, minlength=len(paths)) > _MANY_ROWS
        counts = np.where(many, _STAGED_BUCKETS, 1)
    codes = partitions.astype(np.int64) * bucket.segments + numbers % counts[partitions]
    # Numbers of two bytes are sorted many times faster.
    small = int(codes.max()) <= np.iinfo(np.uint16).max
    order = np.argsort(codes.astype(np.uint16) if small else codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for indices in np.split(order, ends):
        partition, number = divmod(int(codes[indices[0]]), bucket.segments)
        if not bucket.halves:
            yield _Part(Slot(partition_path=paths[partition], bucket=number), indices)
            continue
        slot = Slot(partition_path=paths[partition], bucket=number, of=int(counts[partition]))
        few = tuple(np.unique(numbers[indices]).tolist()) if counts[partition] == 1 else None
        yield _Part(slot, indices, few)


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) != 1:
        raise ValueError(f"{table.num_rows} rows do not fit one record batch")
    return batches[0]
