"""Staged input: validated rows, split by slot.

A slot is one bucket of one partition. Each record batch of a staged file belongs to one slot, so that the task that
merges a bucket opens only its own batches. The API stages small writes, Spark tasks stage large ones; the files are the
same. The rows of the smallest writes are one batch in the order of their slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.format.dataset import BucketMode, DatasetDefinition
from app.format.file_group import Slot
from app.format.operation import Operation
from app.format.partition.codes import partition_codes
from app.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.format.rows.record_key import bucket_numbers

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
        marked = pc.fill_null(rows.column(dataset.delete_marker), False)
        ops[marked.to_numpy()] = Op.RETRACT
    return rows.add_column(0, OP_FIELD, pa.array(ops))


def split_by_slot(
    rows: pa.Table, dataset: DatasetDefinition, first_row: int
) -> Iterator[tuple[Slot, pa.RecordBatch]]:
    """Splits validated rows by slot, keeping their order, and adds each row's position in its write (int64).

    `rows`: `_hw_op` and the dataset's columns. `first_row`: the position in the write of the first of them.
    """
    if rows.num_rows == 0:
        return
    rows = _with_positions(rows, first_row)
    combined = rows.combine_chunks()
    for slot, indices in _rows_by_slot(rows, dataset):
        whole = len(indices) == rows.num_rows
        part = combined if whole else combined.take(pa.array(indices))
        yield slot, _one_batch(part)


def in_slot_order(rows: pa.Table, dataset: DatasetDefinition) -> tuple[pa.Table, list[tuple[Slot, int]]]:
    """What `split_by_slot` returns of a write's only rows, in one table; and the slots with their numbers of rows."""
    rows = _with_positions(rows, 0)
    slots = list(_rows_by_slot(rows, dataset)) if rows.num_rows else []
    if len(slots) > 1:
        rows = rows.take(pa.array(np.concatenate([indices for _, indices in slots])))
    return rows, [(slot, len(indices)) for slot, indices in slots]


def _with_positions(rows: pa.Table, first_row: int) -> pa.Table:
    positions = pa.array(np.arange(first_row, first_row + rows.num_rows, dtype=np.int64))
    return rows.append_column(pa.field(ROW_COLUMN, pa.int64(), nullable=False), positions)


def _rows_by_slot(rows: pa.Table, dataset: DatasetDefinition) -> Iterator[tuple[Slot, np.ndarray]]:
    """The numbers of the rows of each slot, ascending. There is one row at least."""
    # Where keys are unique across partitions, a key is searched in all partitions.
    by = () if dataset.bucket.mode is BucketMode.KEY_DYNAMIC else dataset.partition_by
    partitions, paths = partition_codes(rows, by)
    buckets = bucket_numbers(rows, dataset.bucket_key, dataset.bucket.count, dataset.bucket.function)
    codes = partitions.astype(np.int64) * dataset.bucket.count + buckets
    order = np.argsort(codes, kind="stable")
    ends = np.flatnonzero(np.diff(codes[order])) + 1
    for indices in np.split(order, ends):
        code = int(codes[indices[0]])
        path = paths[code // dataset.bucket.count]
        yield Slot(partition_path=path, bucket=code % dataset.bucket.count), indices


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    if len(batches) != 1:
        raise ValueError(f"{table.num_rows} rows do not fit one record batch")
    return batches[0]
