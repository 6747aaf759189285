"""The merge: applies grouped writes to the live rows of their keys.

The input has only live rows and tombstones whose keys are touched; the rest of a file group is never loaded. All rows
are numbered, the rows of each key are applied as if they came one by one, and the resulting rows are gathered once, at
the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.commit.commit_message import KeyConflict
from app.kernel.commit.merge.fold import FOLDING, Fold
from app.kernel.commit.merge.incoming_rows import IncomingRows, JobFacts, Units
from app.kernel.commit.merge.kept_fields import KeptFields
from app.kernel.commit.merge.key_merger import NO_ROW, TABLE, KeyMerger, KeyTable
from app.kernel.commit.merge.key_steps import ALWAYS, LIVE, TOMBSTONE
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
from app.kernel.format.partition.members import columns_of, key_fields, key_rows, member_path
from app.kernel.format.partition.row_partitions import values_at
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD, META_FIELDS, VERSION_COLUMN
from app.kernel.format.rows.staging import JOB_COLUMN
from app.kernel.format.rows.tombstones import (
    DELETED_AT_FIELD,
    KEEP_FIELD,
    ORDERING_COLUMN,
    VERSION_FIELD,
    expiries,
    ordering_type,
    tombstone_schema,
)

_ORDERED = (MergeMode.EVENT_TIME, *FOLDING)


def merge(
    dataset: DatasetDefinition,
    current: pa.Table,
    incoming: pa.Table,
    intents: Mapping[int, WriteIntent],
    *,
    tombstones: pa.Table | None = None,
    retract_rest: bool = False,
    committed: bool = False,
) -> MergeResult:
    """Merges grouped writes into the live rows of their keys.

    `current`: live rows, the dataset's columns and the meta columns, unique by key. `incoming`: `_hw_op`, the dataset's
    columns (nullable), `_hw_job` and `_hw_row`, ordered by both, and `_hw_kept` where rows keep fields. Rows of logs
    may also have meta columns: then the resulting rows have those of the rows that caused them. `intents`: by
    `_hw_job`.

    `tombstones`: those of touched keys (`tombstone_schema`), with the times of their deletes; no key is in `current`,
    too. `committed`: the incoming rows are those of earlier commits, whose times the intents have.

    `retract_rest`: retracts current rows whose key no incoming row has; only for a single write. Rows without a key are
    matched by all their values, in this way or by changes (`app.kernel.commit.merge.row_changes`).
    """
    if not dataset.keyed and not retract_rest:
        if not all(matches_equal_rows(intent.operation, dataset) for intent in intents.values()):
            raise ValueError("rows without a key can only be merged with retract_rest, or as changes")
        return merge_row_changes(dataset, current, incoming, intents)
    if tombstones is None or not tombstones.num_rows:
        result = add_new_rows(dataset, current, incoming, intents)
        if result is not None:
            return result
    merge_input = _MergeInput.of(dataset, current, tombstones, incoming, intents, committed=committed)
    merger = merge_input.merger()
    merger.run()
    if retract_rest:
        merge_input.retract_rest(merger, min(intents))
    return merge_input.result(merger)


@dataclass(frozen=True, kw_only=True)
class _MergeInput:
    """The input of a merge. `rows` has the current and the incoming rows.

    `key` and `order` (int64): of the current rows, the tombstones and the incoming rows. `ordering_values`: of all of
    these; None where rows have no order.
    """

    dataset: DatasetDefinition
    current: pa.Table
    tombstones: pa.Table | None
    incoming: pa.Table
    intents: Mapping[int, WriteIntent]
    committed: bool
    fold: Fold | None
    rows: NumberedRows
    key: np.ndarray
    order: np.ndarray
    ordering_values: pa.ChunkedArray | None
    incoming_rows: IncomingRows

    @classmethod
    def of(
        cls,
        dataset: DatasetDefinition,
        current: pa.Table,
        tombstones: pa.Table | None,
        incoming: pa.Table,
        intents: Mapping[int, WriteIntent],
        *,
        committed: bool,
    ) -> _MergeInput:
        fold = Fold.of(dataset)
        columns = dataset.schema.names()
        nullable_schema = pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()])
        state_schema = nullable_schema if fold is None else fold.widened()
        job = incoming.column(JOB_COLUMN).to_numpy().astype(np.int64)
        states = incoming.select(columns).cast(state_schema).combine_chunks()
        if fold is not None:
            whole = [number for number, intent in intents.items() if intent.replaces_rows]
            states = fold.states(states, ~np.isin(job, whole))
        rows = NumberedRows([current.select(columns).cast(state_schema), states])
        base, everything = current.num_rows, rows.all()
        if dataset.keyed:
            parts = [current, incoming] if tombstones is None else [current, tombstones, incoming]
            key = key_numbers(dataset.record_key, *parts)
        else:
            key = occurrence_numbers(everything, base)
        values = _ordering_values(dataset, current, tombstones, incoming)
        order = np.zeros(len(key), dtype=np.int64) if values is None else _ranks(values)
        first = len(key) - incoming.num_rows
        return cls(
            dataset=dataset,
            current=current,
            tombstones=tombstones,
            incoming=incoming,
            intents=intents,
            committed=committed,
            fold=fold,
            rows=rows,
            key=key,
            order=order,
            ordering_values=values,
            incoming_rows=IncomingRows(
                key=key[first:],
                job=job,
                op=incoming.column(OP_COLUMN).to_numpy(),
                order=order[first:],
                number=base + np.arange(incoming.num_rows),
            ),
        )

    @property
    def _first_incoming(self) -> int:
        return len(self.key) - int(self.incoming.num_rows)

    def merger(self) -> KeyMerger:
        base, first = self.current.num_rows, self._first_incoming
        facts = JobFacts.of(self.intents)
        return KeyMerger(
            fold=self.fold,
            ordered=self.ordering_values is not None,
            rows=self.rows,
            incoming=self.incoming_rows,
            steps=self.incoming_rows.steps(
                facts, self.dataset.merge_mode, ordered=self.ordering_values is not None
            ),
            units=Units.of(self.incoming_rows),
            table=KeyTable.of(
                int(self.key.max(initial=-1)) + 1,
                (self.key[:base], self.order[:base]),
                (self.key[base:first], self.order[base:first]),
                np.zeros(0, dtype=np.int64) if self.tombstones is None else expiries(self.tombstones),
            ),
            facts=facts,
            kept=KeptFields.of(self.dataset, self.incoming),
        )

    def retract_rest(self, merger: KeyMerger, job: int) -> None:
        base = self.current.num_rows
        in_write = np.zeros(len(merger.table.job), dtype=bool)
        in_write[self.incoming_rows.key] = True
        for _, positions in merger.overflowing:
            # Their rows are quarantined, so they are no part of the new content.
            in_write[self.incoming_rows.key[positions]] = False
        rest = self.key[:base][~in_write[self.key[:base]]]
        # Without a key no row replaces another: the feed retracts the old rows first.
        merger.retract(rest, job, len(self.incoming_rows.key) if self.dataset.keyed else -len(rest))

    def result(self, merger: KeyMerger) -> MergeResult:
        base = self.current.num_rows
        quarantine_positions, overflow_fields = self._quarantine(merger)
        feed = ChangeArrays.of(merger.events)
        changes = self.rows.gather(feed.row)
        keys = columns_of(self.incoming, self.dataset.record_key)
        conflicts = key_conflicts(merger.refusals, self.incoming_rows.job, keys)
        if self.fold is not None:
            conflicts += overflow_conflicts(self.fold.overflows(changes), feed, keys, self.intents)
        counts = row_counts(merger.outcomes, self.intents)
        if conflicts:
            return self._refused(counts, conflicts)
        is_live = merger.table.states.kind == LIVE
        row_of = np.where(is_live, merger.table.states.row, NO_ROW)
        at = row_of[self.key[:base]]
        stays = at == np.arange(base)
        appends_only = bool((feed.op == Op.APPEND).all())
        live = row_of[row_of >= base]
        # Every appended row is live, unless another change takes it back.
        live = feed.row if appends_only else np.sort(live)
        live_keys = np.flatnonzero(is_live)
        key_of = np.full(self.rows.count, -1, dtype=np.int64)
        key_of[row_of[live_keys]] = live_keys
        # What each key had before: a current row or, numbered behind these, a tombstone.
        before = np.full(len(row_of), -1, dtype=np.int64)
        before[self.key[: self._first_incoming]] = np.arange(self._first_incoming)
        made = self._made_tombstones(merger)
        lineage = RowLineage.of(self.rows.count, self.current, self.incoming, feed)
        schema = self.dataset.schema.to_arrow()
        return MergeResult(
            stays=stays,
            rows=lineage.stored_rows(self.rows.gather(live).cast(schema), live),
            replaces=before[key_of[live]],
            changes=lineage.change_rows(changes.cast(schema), feed),
            counts=counts,
            conflicts=(),
            quarantined_rows=self.incoming.take(pa.array(quarantine_positions)),
            overflow_fields=overflow_fields,
            appends_only=appends_only,
            tombstones_stay=self._tombstones_stay(merger),
            tombstones=self._new_tombstones(merger, made),
            tombstones_replace=before[made],
            valid_until=None if merger.valid_until == ALWAYS else merger.valid_until,
        )

    def _tombstones_stay(self, merger: KeyMerger) -> np.ndarray:
        """Which of the tombstones are still there (bool)."""
        key = self.key[self.current.num_rows : self._first_incoming]
        stays: np.ndarray = (merger.table.states.kind[key] == TOMBSTONE) & (merger.table.job[key] == TABLE)
        return stays

    def _made_tombstones(self, merger: KeyMerger) -> np.ndarray:
        """The keys whose tombstones the writes leave (int64)."""
        table = merger.table
        made = (table.states.kind == TOMBSTONE) & (table.job != TABLE)
        return np.flatnonzero(made & (self.ordering_values is not None))

    def _new_tombstones(self, merger: KeyMerger, made: np.ndarray) -> pa.Table | None:
        """The tombstones that the writes leave for these keys; None without any."""
        if not len(made):
            return None
        table = merger.table
        cause = pa.array(table.states.cause[made])
        facts, jobs = merger.facts, table.job[made]
        rows = self.incoming.take(cause)
        keys = key_rows(rows.select(key_fields(self.dataset)), self.dataset.record_key)
        nulls = pa.nulls(len(made), pa.int64())
        committed_at = pa.array(facts.committed_at[jobs], mask=np.full(len(made), not self.committed))
        columns = {
            **dict(zip(keys.column_names, keys.columns, strict=True)),
            ORDERING_COLUMN: self._values_of(table.states.order[made]),
            VERSION_FIELD.name: rows.column(VERSION_COLUMN) if VERSION_COLUMN in rows.column_names else nulls,
            DELETED_AT_FIELD.name: committed_at.cast(DELETED_AT_FIELD.type),
            KEEP_FIELD.name: pa.array(facts.keep_seconds[jobs], KEEP_FIELD.type),
        }
        return pa.table(columns).cast(tombstone_schema(self.dataset))

    def _values_of(self, order: np.ndarray) -> pa.ChunkedArray:
        """The ordering values with these ranks."""
        places = np.zeros(int(self.order.max(initial=0)) + 1, dtype=np.int64)
        places[self.order] = np.arange(len(self.order))
        assert self.ordering_values is not None
        return self.ordering_values.take(pa.array(places[order], mask=order == 0))

    def _quarantine(self, merger: KeyMerger) -> tuple[np.ndarray, tuple[str | None, ...]]:
        """Positions of the incoming rows to quarantine; for each the field whose sum overflows, or None for a live key.

        Of a key whose sum overflows, all rows of the write.
        """
        fields: dict[int, str | None] = {}
        for positions in merger.quarantine:
            fields |= dict.fromkeys(positions.tolist())
        for name, positions in merger.overflowing:
            fields |= dict.fromkeys(positions.tolist(), name)
        quarantined = np.array(sorted(fields), dtype=np.int64)
        merger.record("quarantined", self.incoming_rows.job[quarantined])
        return quarantined, tuple(fields[position] for position in quarantined.tolist())

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
            tombstones_stay=np.ones(0 if self.tombstones is None else self.tombstones.num_rows, dtype=bool),
        )


def _ordering_values(
    dataset: DatasetDefinition, current: pa.Table, tombstones: pa.Table | None, incoming: pa.Table
) -> pa.ChunkedArray | None:
    """The ordering values of all rows; None where rows have no order."""
    if dataset.ordering_field is None or dataset.merge_mode not in _ORDERED:
        return None
    path = member_path(dataset.ordering_field, dataset.schema.names())
    kind = ordering_type(dataset)
    parts = [values_at(current, path), values_at(incoming, path)]
    if tombstones is not None:
        parts.insert(1, values_at(tombstones, (ORDERING_COLUMN,)))
    return pa.chunked_array([part.cast(kind) for part in parts], kind)


def _ranks(values: pa.ChunkedArray) -> np.ndarray:
    """The dense rank of every value: int64, from 1, 0 for null."""
    ranks: np.ndarray = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[values.is_null().to_numpy()] = 0
    return ranks
