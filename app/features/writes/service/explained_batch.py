"""The write of an explanation: its rows in memory, and the effect on each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from app.features.writes.explanation import ExplainedKey, LiveRow
from app.infra.files.lookups.key_search import FoundTombstone
from app.kernel.codecs.json.objects import to_objects
from app.kernel.commit.storing import Storing
from app.kernel.commit.write_effect import WriteEffect, effect_of
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.commit.write_plan import MergeTask
from app.kernel.commit.write_rules import applies_by_arrival
from app.kernel.format.dataset import BucketFunction, BucketMode, DatasetDefinition, MergeMode
from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.halving import inside, key_numbers
from app.kernel.format.index.key_hash import hash_keys
from app.kernel.format.index.live_key import LiveKey
from app.kernel.format.operation import Operation
from app.kernel.format.partition.members import column_of
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.placement import Placement
from app.kernel.format.rows.record_key import encode_keys
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from app.kernel.format.rows.staging import ROW_COLUMN, split_by_slot, with_ops

_NUMBER: Final = "_hw_number"
_STORED: Final = (WriteEffect.INSERT, WriteEffect.MERGE, WriteEffect.REPLACE)
# Merge modes in which a row with another partition stays in the partition of the first one.
_STAYING: Final = (MergeMode.FIRST, MergeMode.PARTIAL, MergeMode.AGGREGATE)


class ExplainedBatch(msgspec.Struct, frozen=True, kw_only=True):
    """A write of rows in memory: `_hw_op`, the dataset's columns, `_hw_row`, by the slots they go to.

    `partitions`: those that the rows are in, where slots do not show it. `keys_only`: nothing but keys is known.
    """

    operation: Operation
    options: WriteOptions
    by_slot: dict[Slot, pa.Table]
    partitions: tuple[str, ...]
    keys_only: bool

    def staged(self, dataset: DatasetDefinition) -> list[StagedFile]:
        """What the rows would be staged as; there is no such file."""
        batches = tuple(
            StagedBatch(slot=slot, index=index, rows=rows.num_rows, numbers=key_numbers(rows, dataset))
            for index, (slot, rows) in enumerate(self.by_slot.items())
        )
        rows = sum(batch.rows for batch in batches)
        size = sum(table.nbytes for table in self.by_slot.values())
        file = StagedFile(
            path="", size_bytes=size, checksum="", rows=rows, batches=batches, partitions=self.partitions
        )
        return [file] if rows else []

    def rows_of(self, task: MergeTask) -> pa.Table:
        """The rows that the task merges."""
        slots = [batch.slot for segment in task.segments for batch in segment.file.batches]
        indices = [index for segment in task.segments for index in segment.batch_indices]
        rows = pa.concat_tables([self.by_slot[slots[index]] for index in indices])
        if task.slot.of is not None:
            rows = rows.filter(pa.array(inside(rows, task.dataset, task.slot))).sort_by(ROW_COLUMN)
        return rows


def batch_of(
    dataset: DatasetDefinition,
    operation: Operation,
    options: WriteOptions,
    rows: pa.Table,
    *,
    keys_only: bool = False,
) -> ExplainedBatch:
    """The batch of checked rows."""
    by_slot = {
        slot: pa.Table.from_batches([batch])
        for slot, batch in split_by_slot(with_ops(rows, operation, dataset), dataset, 0)
    }
    needs_partitions = operation is Operation.OVERWRITE and dataset.bucket.mode is BucketMode.KEY_DYNAMIC
    return ExplainedBatch(
        operation=operation,
        options=options,
        by_slot=by_slot,
        partitions=tuple(partition_codes(rows, dataset.partition_by)[1]) if needs_partitions else (),
        keys_only=keys_only,
    )


def explained_keys(
    task: MergeTask,
    batch: ExplainedBatch,
    rows: pa.Table,
    keys: pa.ChunkedArray,
    live: dict[bytes, LiveKey],
    tombstones: dict[bytes, FoundTombstone],
    storing: Storing,
) -> list[ExplainedKey]:
    """Explains each of the batch's `rows` in one task. `keys`: their canonical keys; `live`: keys that have a row;
    `tombstones`: keys that have one, also one whose time is over.
    """
    dataset = task.dataset
    names = dataset.record_key
    values = [
        [value for chunk in column_of(rows, name).chunks for value in to_objects(chunk)] for name in names
    ]
    live_keys = [live.get(key) for key in keys.to_pylist()]
    ops = rows.column(OP_COLUMN).to_pylist()
    stored_tombstones = [tombstones.get(key) for key in keys.to_pylist()]
    row_tombstones = [_lasting(task, each) for each in stored_tombstones]
    kept_away = _kept_away(batch, dataset, rows, row_tombstones)
    effects = [
        _effect(batch, op, live=at is not None, kept_away=away)
        for op, at, away in zip(ops, live_keys, kept_away, strict=True)
    ]
    former = [_file(at, each) for at, each in zip(live_keys, stored_tombstones, strict=True)]
    slots = _slots(task, batch, rows, former, effects, storing)
    searches_keys = storing is not Storing.POSTPONE
    return [
        ExplainedKey(
            row=row,
            key=dict(zip(names, key, strict=True)),
            hash=text,
            live=None if at is None else _live_row(task.files, at),
            tombstone=None if tombstone is None else tombstone.described(),
            effect=effect if searches_keys else None,
            partition_path=None if slot is None else slot.partition_path,
            bucket=None if slot is None else slot.bucket,
        )
        for row, key, text, at, tombstone, effect, slot in zip(
            rows.column(ROW_COLUMN).to_pylist(),
            zip(*values, strict=True),
            _hashes(dataset, rows),
            live_keys,
            row_tombstones,
            effects,
            slots,
            strict=True,
        )
    ]


def _lasting(task: MergeTask, tombstone: FoundTombstone | None) -> FoundTombstone | None:
    """The tombstone, if the rows of a write that is planned now are compared with it."""
    now = task.planned_at
    return None if tombstone is None or (now is not None and tombstone.until < now) else tombstone


def _file(live: LiveKey | None, tombstone: FoundTombstone | None) -> int:
    """The number of the file that has the key, as a row or a tombstone; -1 for none."""
    at = tombstone if live is None else live
    return -1 if at is None or at.file is None else at.file


def _kept_away(
    batch: ExplainedBatch,
    dataset: DatasetDefinition,
    rows: pa.Table,
    tombstones: Sequence[FoundTombstone | None],
) -> list[bool | None]:
    """For each row whether a tombstone keeps it away; None if its ordering value is unknown."""
    if batch.keys_only:
        return [False if each is None else None for each in tombstones]
    if dataset.ordering_field is None or applies_by_arrival(batch.operation, batch.options):
        return [False] * rows.num_rows
    values = column_of(rows, dataset.ordering_field).to_pylist()
    return [
        each is not None and each.keeps_away(value) for each, value in zip(tombstones, values, strict=True)
    ]


def _effect(batch: ExplainedBatch, op: int, *, live: bool, kept_away: bool | None) -> WriteEffect:
    return effect_of(
        batch.operation,
        op,
        live=live,
        drop_duplicates=batch.options.drop_duplicates,
        quarantine=batch.options.on_error is OnError.QUARANTINE,
        kept_away=kept_away,
    )


def _live_row(files: Sequence[DataFile], at: LiveKey) -> LiveRow:
    file = None if at.file is None else files[at.file].path
    return LiveRow(version=at.version, offset=at.offset, file=file, position=at.position)


def _hashes(dataset: DatasetDefinition, rows: pa.Table) -> list[str | None]:
    if dataset.bucket.function is BucketFunction.MOD:
        return [None] * rows.num_rows
    return [f"{number:016x}" for number in hash_keys(encode_keys(rows, dataset.bucket_key)).tolist()]


def _slots(
    task: MergeTask,
    batch: ExplainedBatch,
    rows: pa.Table,
    files: Sequence[int],
    effects: Sequence[WriteEffect],
    storing: Storing,
) -> list[Slot | None]:
    """The slot of each row; None where no row is stored, a compaction decides it, or the partition is unknown.

    `files`: by row, the number of the file that has its key, -1 for none.
    """
    slots: list[Slot | None] = [None] * rows.num_rows
    dataset = task.dataset
    if storing in (Storing.LOG, Storing.POSTPONE) and dataset.bucket.opens_by_size:
        return slots
    former = np.array(files, dtype=np.int64)
    to_store = np.array([effect in _STORED for effect in effects])
    if dataset.bucket.mode is BucketMode.KEY_DYNAMIC and (batch.keys_only or dataset.merge_mode in _STAYING):
        is_live = [number >= 0 and task.files[number].kind.holds_rows for number in files]
        stays = to_store & np.array(is_live, dtype=bool)
        for number in np.flatnonzero(stays):
            slots[number] = task.files[int(former[number])].slot
        # A key alone does not determine the partition of its row.
        to_store &= ~stays & (not batch.keys_only)
    numbered_rows = rows.append_column(_NUMBER, pa.array(np.arange(rows.num_rows))).filter(pa.array(to_store))
    placement = Placement(dataset, task.slot, task.files)
    for slot, part in placement.split(numbered_rows, former[to_store]):
        for number in part.column(_NUMBER).to_pylist():
            slots[number] = slot
    return slots
