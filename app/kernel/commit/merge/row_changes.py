"""The merge of changes to rows without a key: a retraction removes one row that equals it in every value.

The changes of the write are applied in their order. Then those that cancel each other are left out: of a value that is
appended and retracted in one write, the difference remains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.kernel.commit.commit_message import KeyConflict
from app.kernel.commit.merge.numbered_rows import NumberedRows, occurrences_of
from app.kernel.commit.merge.outcome import KEYS_NAMED_MAX, ChangeArrays, MergeResult, RowLineage, row_counts
from app.kernel.commit.merge.values import row_codes
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.instant import RowCounts
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD, META_FIELDS
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN

_PUTS = (Op.APPEND, Op.CORRECT_TO)


def merge_row_changes(
    dataset: DatasetDefinition, current: pa.Table, incoming: pa.Table, intents: Mapping[int, WriteIntent]
) -> MergeResult:
    """The result of `merge` for the changes of one write to rows without a key.

    A retraction whose row is not there is a conflict, or is quarantined. Raises ValueError for several writes.
    """
    if len(intents) != 1:
        raise ValueError(
            f"changes to rows without a key are merged write by write, not {len(intents)} writes"
        )
    [(job, intent)] = intents.items()
    names = dataset.schema.names()
    nullable_schema = pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()])
    rows = NumberedRows(
        [
            current.select(names).cast(nullable_schema).combine_chunks(),
            incoming.select(names).cast(nullable_schema).combine_chunks(),
        ]
    )
    base = current.num_rows
    puts = np.isin(incoming.column(OP_COLUMN).to_numpy(), _PUTS)
    _, value = np.unique(row_codes(rows.all()), return_inverse=True)
    effect = _Effect.of(value[:base].astype(np.int64), value[base:].astype(np.int64), puts)
    unchanged_count = len(puts) - len(effect.appending) - len(effect.retracting) - len(effect.absent)
    outcomes = {
        "inserted": len(effect.appending),
        "deleted": len(effect.retracting),
        "unchanged": unchanged_count,
        "quarantined": len(effect.absent) if intent.quarantine else 0,
    }
    counts = row_counts({name: [np.full(count, job)] for name, count in outcomes.items()}, intents)
    schema = dataset.schema.to_arrow()
    if len(effect.absent) and not intent.quarantine:
        return _refused(dataset, current, incoming, job, effect.absent, counts)
    jobs = incoming.column(JOB_COLUMN).to_numpy().astype(np.int64)
    feed = ChangeArrays.of(
        [
            (effect.retracting, Op.RETRACT, effect.targets, jobs[effect.retracting]),
            (effect.appending, Op.APPEND, base + effect.appending, jobs[effect.appending]),
        ]
    )
    stays = np.ones(base, dtype=bool)
    stays[effect.targets] = False
    lineage = RowLineage.of(rows.count, current, incoming, feed)
    new_numbers = base + effect.appending
    return MergeResult(
        stays=stays,
        rows=lineage.stored_rows(rows.gather(new_numbers).cast(schema), new_numbers),
        replaces=np.full(len(new_numbers), -1, dtype=np.int64),
        changes=lineage.change_rows(rows.gather(feed.row).cast(schema), feed),
        counts=counts,
        conflicts=(),
        quarantined_rows=incoming.take(pa.array(effect.absent)),
        overflow_fields=(None,) * len(effect.absent),
        appends_only=not len(effect.retracting),
    )


def _refused(
    dataset: DatasetDefinition,
    current: pa.Table,
    incoming: pa.Table,
    job: int,
    absent: np.ndarray,
    counts: dict[int, RowCounts],
) -> MergeResult:
    """The result of a write that retracts rows that are not there: nothing changes."""
    positions = np.sort(incoming.column(ROW_COLUMN).to_numpy()[absent])
    conflict = KeyConflict(
        job=job,
        other_jobs=(-1,),
        keys=(),
        count=len(positions),
        absent=tuple(positions[:KEYS_NAMED_MAX].tolist()),
    )
    schema = dataset.schema.to_arrow()
    return MergeResult(
        stays=np.ones(current.num_rows, dtype=bool),
        rows=pa.schema([*schema, *META_FIELDS]).empty_table(),
        replaces=np.zeros(0, dtype=np.int64),
        changes=pa.schema([OP_FIELD, CORRECTS_FIELD, *schema]).empty_table(),
        counts=counts,
        conflicts=(conflict,),
        quarantined_rows=incoming.slice(0, 0),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Effect:
    """The changes that remain, by position of the incoming row (int64, ascending but for `retracting`).

    `appending` adds a row. `retracting` removes the current row that is at the same place of `targets`. `absent`
    retracts a row that is not there.
    """

    appending: np.ndarray
    retracting: np.ndarray
    targets: np.ndarray
    absent: np.ndarray

    @classmethod
    def of(cls, current: np.ndarray, incoming: np.ndarray, puts: np.ndarray) -> _Effect:
        """`current`, `incoming`: the number of the value of each row (int64, dense). `puts`: which rows are added."""
        values = int(max(current.max(initial=-1), incoming.max(initial=-1))) + 1
        live = np.bincount(current, minlength=values)
        absent = _absent(live, incoming, puts)
        takes = ~puts & ~absent
        put_counts, take_counts = (np.bincount(incoming[rows], minlength=values) for rows in (puts, takes))
        cancel_counts = np.minimum(put_counts, take_counts)
        appending, retracting = np.flatnonzero(puts), np.flatnonzero(takes)
        appending = appending[occurrences_of(incoming[appending]) >= cancel_counts[incoming[appending]]]
        retracting = retracting[occurrences_of(incoming[retracting]) >= cancel_counts[incoming[retracting]]]
        # Of equal rows the last ones go. Both sides have the same number of each value.
        targets = np.flatnonzero(occurrences_of(current) >= (live - (take_counts - cancel_counts))[current])
        return cls(
            appending=appending,
            retracting=retracting[np.argsort(incoming[retracting], kind="stable")],
            targets=targets[np.argsort(current[targets], kind="stable")],
            absent=np.flatnonzero(absent),
        )


def _absent(live: np.ndarray, incoming: np.ndarray, puts: np.ndarray) -> np.ndarray:
    """Which of the changes, in their order, retract a row (bool) when no row of their value is left.

    `live`: by value, the number of rows before. Such a retraction has no effect on those after it. It is one that takes
    the sum of the value below 0 and below each earlier sum.
    """
    absent = np.zeros(len(incoming), dtype=bool)
    if not len(incoming):
        return absent
    order = np.argsort(incoming, kind="stable")
    value, steps = incoming[order], np.where(puts[order], 1, -1)
    first = np.diff(value, prepend=-1) != 0
    starts = np.flatnonzero(first)
    sums = np.cumsum(steps)
    before = np.repeat(sums[starts] - steps[starts], np.diff(np.append(starts, len(order))))
    sums = sums - before + live[value]
    # Values are apart from each other, so that a minimum over all of them is one within each.
    apart = value * (2 * len(order) + int(live.max()) + 2)
    lowest = np.minimum(np.minimum.accumulate(sums - apart) + apart, 0)
    earlier = np.where(first, 0, np.append(0, lowest[:-1]))
    absent[order] = (steps < 0) & (lowest < earlier)
    return absent
