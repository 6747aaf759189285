"""The outcome of a merge: changes in feed order, rows to store with their lineage, conflicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa

from app.kernel.commit.commit_message import KeyConflict
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.instant import RowCounts
from app.kernel.format.rows.changelog import OP_FIELD, Op
from app.kernel.format.rows.meta_columns import (
    CORRECTS_FIELD,
    META_FIELDS,
    META_NAMES,
    OFFSET_COLUMN,
    VERSION_COLUMN,
    relative_offsets,
)

KEYS_NAMED_MAX: Final = 10
UNKNOWN: Final = np.iinfo(np.int64).min


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """The result of a merge.

    `stays`: over the current rows (bool), true where the row is unchanged. `rows`: rows to add, the dataset's columns
    and the meta columns. `replaces`: by row of `rows`, what its key had before: the index of a current row or, behind
    these, of a tombstone; -1 for a new key (int64).
    `changes`: `_hw_op`, `_hw_corrects` and the dataset's columns, in feed order. `counts`: by grouped write.
    `quarantined_rows`: incoming rows to quarantine. `overflow_fields`: for each of them, the field whose sum would
    overflow, None for a row whose key is live. If there are conflicts, rows and changes are not usable. `appends_only`:
    whether the changes are the appends of `rows`, in their order, and no others. `key_hashes`: of the keys of `rows`
    (uint64), if they are known.

    `tombstones_stay`: over the tombstones (bool), true where the tombstone is still there. `tombstones`: those to add
    (`tombstone_schema`), None for none. `tombstones_replace`: by tombstone to add, what its key had before, as
    `replaces`. `valid_until`: the least of the times until which tombstones that rows were compared with are compared
    with any, in microseconds since 1970; None if there was none.
    """

    stays: np.ndarray
    rows: pa.Table
    replaces: np.ndarray
    changes: pa.Table
    counts: dict[int, RowCounts]
    conflicts: tuple[KeyConflict, ...]
    quarantined_rows: pa.Table
    overflow_fields: tuple[str | None, ...] = ()
    appends_only: bool = False
    key_hashes: np.ndarray | None = None
    tombstones_stay: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=bool))
    tombstones: pa.Table | None = None
    tombstones_replace: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    valid_until: int | None = None

    @property
    def changed(self) -> bool:
        """Whether rows or tombstones of the table change."""
        return self.changes.num_rows > 0 or self.tombstones is not None or not self.tombstones_stay.all()

    def in_order(self, order: np.ndarray) -> MergeResult:
        """The same appends in another order. `order`: the numbers of the rows (int64). Only for `appends_only`."""
        rows = self.rows.take(pa.array(order))
        at = rows.schema.get_field_index(OFFSET_COLUMN)
        rows = rows.set_column(at, META_FIELDS[1], relative_offsets(np.arange(rows.num_rows)))
        columns = rows.select([name for name in rows.column_names if name not in META_NAMES])
        return replace(
            self,
            rows=rows,
            replaces=self.replaces[order],
            changes=appends(columns),
            key_hashes=None if self.key_hashes is None else self.key_hashes[order],
        )


def appends(rows: pa.Table) -> pa.Table:
    """The changes of new rows: `_hw_op`, `_hw_corrects` and the columns of the rows."""
    changes = rows.add_column(0, CORRECTS_FIELD, pa.nulls(rows.num_rows, pa.int64()))
    return changes.add_column(0, OP_FIELD, pa.array(np.full(rows.num_rows, Op.APPEND, dtype=np.uint8)))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeArrays:
    """Changes in feed order, as arrays of one length (int64 by default): the position of the incoming row that caused
    each, `op` (uint8), the number of the changed row, the job.
    """

    cause: np.ndarray
    op: np.ndarray
    row: np.ndarray
    job: np.ndarray

    @classmethod
    def of(cls, events: Iterable[tuple[np.ndarray, Op, np.ndarray, np.ndarray]]) -> ChangeArrays:
        """The changes in the order of the rows that caused them, so that a key's changes are in order of acceptance."""
        parts = [part for part in events if len(part[0])]
        empty = np.zeros(0, dtype=np.int64)
        cause = np.concatenate([empty, *(part[0] for part in parts)])
        op = np.concatenate(
            [empty.astype(np.uint8), *(np.full(len(part[0]), part[1], dtype=np.uint8) for part in parts)]
        )
        order = np.lexsort((op, cause))
        return cls(
            cause=cause[order],
            op=op[order],
            row=np.concatenate([empty, *(part[2] for part in parts)])[order],
            job=np.concatenate([empty, *(part[3] for part in parts)])[order],
        )

    @property
    def puts(self) -> np.ndarray:
        """Whether each change puts a row (bool); the others retract one."""
        return np.isin(self.op, (Op.APPEND, Op.CORRECT_TO))


@dataclass(frozen=True, kw_only=True, slots=True)
class RowLineage:
    """The lineage of rows, by row number (int64, UNKNOWN for null)."""

    version: np.ndarray
    offset: np.ndarray

    @classmethod
    def of(cls, rows: int, current: pa.Table, incoming: pa.Table, feed: ChangeArrays) -> RowLineage:
        """The lineage of all rows. A row that was put has the version and offset of the row that caused it, if the
        incoming rows have them.

        Otherwise the version is unknown, and the offset is relative to the changes of this merge.
        """
        version = np.full(rows, UNKNOWN, dtype=np.int64)
        offset = np.full(rows, UNKNOWN, dtype=np.int64)
        version[: current.num_rows] = _numbers(current.column(VERSION_COLUMN))
        offset[: current.num_rows] = _numbers(current.column(OFFSET_COLUMN))
        places = np.flatnonzero(feed.puts)
        cause = feed.cause[places]
        if VERSION_COLUMN in incoming.column_names:
            version[feed.row[places]] = _numbers(incoming.column(VERSION_COLUMN))[cause]
        offset[feed.row[places]] = (
            _numbers(incoming.column(OFFSET_COLUMN))[cause]
            if OFFSET_COLUMN in incoming.column_names
            else -1 - places
        )
        return cls(version=version, offset=offset)

    def stored_rows(self, rows: pa.Table, numbers: np.ndarray) -> pa.Table:
        """The rows with these numbers and their meta columns."""
        rows = rows.append_column(META_FIELDS[0], _nullable(self.version[numbers]))
        return rows.append_column(META_FIELDS[1], _nullable(self.offset[numbers]))

    def change_rows(self, changes: pa.Table, feed: ChangeArrays) -> pa.Table:
        """The changes with `_hw_op` and `_hw_corrects` in front."""
        corrects = np.where(feed.puts, UNKNOWN, self.offset[feed.row])
        changes = changes.add_column(0, CORRECTS_FIELD, _nullable(corrects))
        return changes.add_column(0, OP_FIELD, pa.array(feed.op))


def row_counts(
    outcomes: Mapping[str, Iterable[np.ndarray]], intents: Mapping[int, WriteIntent]
) -> dict[int, RowCounts]:
    """The counts by job, from the jobs of rows by the name of the outcome."""
    totals = {job: dict.fromkeys(RowCounts.__struct_fields__, 0) for job in sorted(intents)}
    for outcome, parts in outcomes.items():
        counts = np.bincount(np.concatenate([*parts]), minlength=max(totals, default=0) + 1)
        for job, total in totals.items():
            total[outcome] = int(counts[job])
    return {job: RowCounts(**total) for job, total in totals.items()}


def key_conflicts(
    refusals: Iterable[tuple[np.ndarray, np.ndarray]], job_of: np.ndarray, keys: pa.Table
) -> list[KeyConflict]:
    """One conflict per write. `refusals`: positions of incoming rows, and the jobs of the rows that they conflict with.

    `keys`: the key fields of the incoming rows.
    """
    parts = [part for part in refusals if len(part[0])]
    if not parts:
        return []
    positions, other_jobs = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    conflicts = []
    for job in np.unique(job_of[positions]):
        of_job = job_of[positions] == job
        conflicts.append(
            KeyConflict(
                job=int(job),
                other_jobs=tuple(int(other) for other in np.unique(other_jobs[of_job])),
                keys=_listed_keys(keys, positions[of_job]),
                count=int(of_job.sum()),
            )
        )
    return conflicts


def overflow_conflicts(
    overflows: Mapping[str, np.ndarray],
    feed: ChangeArrays,
    keys: pa.Table,
    intents: Mapping[int, WriteIntent],
) -> list[KeyConflict]:
    """One conflict per write and field whose sum does not fit. `overflows`: by field, the changes (bool) with such a
    sum.

    Every earlier write of the group may have contributed.
    """
    conflicts = []
    for name, beyond in overflows.items():
        overflowing = beyond & feed.puts
        for job in np.unique(feed.job[overflowing]):
            causes = feed.cause[overflowing & (feed.job == job)]
            conflicts.append(
                KeyConflict(
                    job=int(job),
                    other_jobs=(-1, *(other for other in sorted(intents) if other < job)),
                    keys=_listed_keys(keys, causes),
                    count=len(causes),
                    overflow_field=name,
                )
            )
    return conflicts


def _listed_keys(keys: pa.Table, positions: np.ndarray) -> tuple[dict[str, object], ...]:
    few = keys.take(pa.array(positions[:KEYS_NAMED_MAX]))
    return tuple({name: _plain(value) for name, value in row.items()} for row in few.to_pylist())


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str) else str(value)


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    numbers: np.ndarray = column.fill_null(UNKNOWN).to_numpy()
    return numbers


def _nullable(numbers: np.ndarray) -> pa.Array:
    return pa.array(numbers, mask=numbers == UNKNOWN)
