"""The merge: applies grouped writes to the live rows of their keys.

The input has only live rows whose keys are touched; the rest of a file group is never loaded. All rows are numbered,
each write is reduced to one mutation per key, the mutations are applied in order of acceptance, and the resulting rows
are gathered once, at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.commit.commit_message import KeyConflict
from app.kernel.commit.merge.fold import FOLDING, Fold
from app.kernel.commit.merge.key_merger import ABSENT, KeyMerger, KeyState, match_actions, quarantining
from app.kernel.commit.merge.key_mutations import (
    IncomingRows,
    Keep,
    KeyMutations,
    ReducedWrites,
    reduce_writes,
)
from app.kernel.commit.merge.new_rows import add_new_rows
from app.kernel.commit.merge.numbered_rows import NumberedRows, key_numbers, occurrence_numbers
from app.kernel.commit.merge.outcome import (
    ChangeArrays,
    MergeResult,
    RowLineage,
    key_conflicts,
    overflow_conflicts,
    row_counts,
)
from app.kernel.commit.merge.row_changes import merge_row_changes
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition, MergeMode
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import matches_equal_rows
from app.kernel.format.partition.members import columns_of, member_path
from app.kernel.format.partition.row_partitions import values_at
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD, META_FIELDS
from app.kernel.format.rows.staging import JOB_COLUMN

_ORDERED = (MergeMode.EVENT_TIME, *FOLDING)


def merge(
    dataset: DatasetDefinition,
    current: pa.Table,
    incoming: pa.Table,
    intents: Mapping[int, WriteIntent],
    *,
    retract_rest: bool = False,
) -> MergeResult:
    """Merges grouped writes into the live rows of their keys.

    `current`: live rows, the dataset's columns and the meta columns, unique by key. `incoming`: `_hw_op`, the dataset's
    columns (nullable), `_hw_job` and `_hw_row`, ordered by both. Rows of logs may also have meta columns: then
    the resulting rows have those of the rows that caused them. `intents`: by `_hw_job`.

    `retract_rest`: retracts current rows whose key no incoming row has; only for a single write. Rows without a key are
    matched by all their values, in this way or by changes (`app.kernel.commit.merge.row_changes`).
    """
    if not dataset.keyed and not retract_rest:
        if not all(matches_equal_rows(intent.operation, dataset) for intent in intents.values()):
            raise ValueError("rows without a key can only be merged with retract_rest, or as changes")
        return merge_row_changes(dataset, current, incoming, intents)
    result = add_new_rows(dataset, current, incoming, intents)
    if result is not None:
        return result
    merge_input = _MergeInput.of(dataset, current, incoming, intents)
    merger = merge_input.merger(intents)
    merger.run()
    if retract_rest:
        merge_input.retract_rest(merger, min(intents))
    return merge_input.result(merger, intents)


@dataclass(frozen=True, kw_only=True)
class _MergeInput:
    """The input of a merge. `rows` has the current and the incoming rows; `key` and `order` go by row number."""

    dataset: DatasetDefinition
    current: pa.Table
    incoming: pa.Table
    fold: Fold | None
    rows: NumberedRows
    key: np.ndarray
    order: np.ndarray
    incoming_rows: IncomingRows
    reduced_writes: ReducedWrites

    @classmethod
    def of(
        cls,
        dataset: DatasetDefinition,
        current: pa.Table,
        incoming: pa.Table,
        intents: Mapping[int, WriteIntent],
    ) -> _MergeInput:
        fold = Fold.of(dataset)
        columns = dataset.schema.names()
        nullable_schema = pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()])
        state_schema = nullable_schema if fold is None else fold.widened()
        job = incoming.column(JOB_COLUMN).to_numpy().astype(np.int64)
        states = incoming.select(columns).cast(state_schema).combine_chunks()
        if fold is not None:
            replacing = [number for number, intent in intents.items() if intent.operation.replaces]
            states = fold.states(states, ~np.isin(job, replacing))
        rows = NumberedRows([current.select(columns).cast(state_schema), states])
        base, everything = current.num_rows, rows.all()
        key = (
            key_numbers(everything, dataset.record_key)
            if dataset.keyed
            else occurrence_numbers(everything, base)
        )
        order = _order_ranks(everything, dataset)
        incoming_rows = IncomingRows(
            key=key[base:], job=job, op=incoming.column(OP_COLUMN).to_numpy(), order=order[base:]
        )
        keep: Keep = "all" if fold is not None else "last"
        keep = "first" if dataset.merge_mode is MergeMode.FIRST else keep
        return cls(
            dataset=dataset,
            current=current,
            incoming=incoming,
            fold=fold,
            rows=rows,
            key=key,
            order=order,
            incoming_rows=incoming_rows,
            reduced_writes=reduce_writes(incoming_rows, keep=keep),
        )

    def merger(self, intents: Mapping[int, WriteIntent]) -> KeyMerger:
        base = self.current.num_rows
        return KeyMerger(
            mode=self.dataset.merge_mode,
            fold=self.fold,
            rows=self.rows,
            mutations=self._mutations(),
            key_state=KeyState.of(int(self.key.max(initial=-1)) + 1, self.key[:base], self.order[:base]),
            actions=match_actions(intents),
            quarantining=quarantining(intents),
        )

    def _mutations(self) -> KeyMutations:
        writes, incoming_rows = self.reduced_writes, self.incoming_rows
        cause = writes.cause
        row = self.current.num_rows + cause
        order = incoming_rows.order[cause]
        if self.fold is not None:
            several = np.bincount(writes.member_of, minlength=len(cause)) > 1
            if several.any():
                of_several = several[writes.member_of]
                numbers = self.current.num_rows + writes.members[of_several]
                combined_rows = self.fold.combine_in_order(
                    self.rows.gather(numbers), writes.member_of[of_several]
                )
                row[several] = self.rows.add(combined_rows)
        return KeyMutations(
            cause=cause,
            row=row,
            key=incoming_rows.key[cause],
            job=incoming_rows.job[cause],
            order=order,
            reset=writes.reset,
            puts=writes.puts,
        )

    def retract_rest(self, merger: KeyMerger, job: int) -> None:
        base = self.current.num_rows
        in_write = np.zeros(len(merger.key_state.live), dtype=bool)
        in_write[self.incoming_rows.key] = True
        for _, mutations in merger.overflowing:
            # Their rows are quarantined, so they are no part of the new content.
            in_write[merger.mutations.key[mutations]] = False
        rest = self.key[:base][~in_write[self.key[:base]]]
        # Without a key no row replaces another: the feed retracts the old rows first.
        merger.retract(rest, job, len(self.incoming_rows.key) if self.dataset.keyed else -len(rest))

    def result(self, merger: KeyMerger, intents: Mapping[int, WriteIntent]) -> MergeResult:
        base = self.current.num_rows
        quarantine_positions, overflow_fields = self._quarantine(merger)
        feed = ChangeArrays.of(merger.events)
        changes = self.rows.gather(feed.row)
        keys = columns_of(self.incoming, self.dataset.record_key)
        conflicts = key_conflicts(merger.refusals, self.incoming_rows.job, keys)
        if self.fold is not None:
            conflicts += overflow_conflicts(self.fold.overflows(changes), feed, keys, intents)
        counts = row_counts(merger.outcomes, intents)
        if conflicts:
            return self._refused(counts, conflicts)
        at = merger.key_state.live[self.key[:base]]
        stays = at == np.arange(base)
        appends_only = bool((feed.op == Op.APPEND).all())
        live = merger.key_state.live[merger.key_state.live >= base]
        # Every appended row is live, unless another change takes it back.
        live = feed.row if appends_only else np.sort(live)
        replaced_by = np.full(self.rows.count, -1, dtype=np.int64)
        replaced_rows = np.flatnonzero(~stays & (at != ABSENT))
        replaced_by[at[replaced_rows]] = replaced_rows
        lineage = RowLineage.of(self.rows.count, self.current, self.incoming, feed)
        schema = self.dataset.schema.to_arrow()
        return MergeResult(
            stays=stays,
            rows=lineage.stored_rows(self.rows.gather(live).cast(schema), live),
            replaces=replaced_by[live],
            changes=lineage.change_rows(changes.cast(schema), feed),
            counts=counts,
            conflicts=(),
            quarantined_rows=self.incoming.take(pa.array(quarantine_positions)),
            overflow_fields=overflow_fields,
            appends_only=appends_only,
        )

    def _quarantine(self, merger: KeyMerger) -> tuple[np.ndarray, tuple[str | None, ...]]:
        """Positions of the incoming rows to quarantine; for each the field whose sum overflows, or None for a live key.

        Of a key whose sum overflows, all rows of the write. Other rows that a write merged away are unchanged.
        """
        selection = np.zeros(len(self.reduced_writes.cause), dtype=bool)
        selection[np.concatenate([np.zeros(0, dtype=np.int64), *merger.quarantine])] = True
        fields: dict[int, str | None] = dict.fromkeys(
            self.reduced_writes.members[selection[self.reduced_writes.member_of]].tolist()
        )
        for name, mutations in merger.overflowing:
            rows, jobs = self.incoming_rows, int(self.incoming_rows.job.max()) + 1
            of_write = merger.mutations.key[mutations] * jobs + merger.mutations.job[mutations]
            fields |= dict.fromkeys(
                np.flatnonzero(np.isin(rows.key * jobs + rows.job, of_write)).tolist(), name
            )
        positions = np.array(sorted(fields), dtype=np.int64)
        merger.record("quarantined", self.incoming_rows.job[positions])
        away = self.reduced_writes.merged_away
        merger.record("unchanged", self.incoming_rows.job[away[~np.isin(away, positions)]])
        return positions, tuple(fields[position] for position in positions.tolist())

    def _refused(self, counts: dict[int, RowCounts], conflicts: list[KeyConflict]) -> MergeResult:
        schema = self.dataset.schema.to_arrow()
        return MergeResult(
            stays=np.ones(self.current.num_rows, dtype=bool),
            rows=pa.schema([*schema, *META_FIELDS]).empty_table(),
            replaces=np.zeros(0, dtype=np.int64),
            changes=pa.schema([OP_FIELD, CORRECTS_FIELD, *schema]).empty_table(),
            counts=counts,
            conflicts=tuple(conflicts),
            quarantined_rows=self.incoming.slice(0, 0),
        )


def _order_ranks(rows: pa.Table, dataset: DatasetDefinition) -> np.ndarray:
    """The dense rank of every row's ordering value: int64, from 1, 0 for null. Without an ordering field, all are 0."""
    if dataset.ordering_field is None or dataset.merge_mode not in _ORDERED:
        return np.zeros(rows.num_rows, dtype=np.int64)
    values = values_at(rows, member_path(dataset.ordering_field, dataset.schema.names()))
    ranks: np.ndarray = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[values.is_null().to_numpy(zero_copy_only=False)] = 0
    return ranks
