"""The merge: what becomes of live rows when grouped writes meet them.

Only rows whose keys were touched come in; the untouched rest of a file group never passes through here. Decisions
are made on row numbers into one pool (the current rows, then the incoming ones); payload columns are gathered
once, at the end, so they may be of any type.

Each write is first reduced to one row per key. Then the writes meet the table in order of acceptance, in rounds: round
n holds every key's n-th write, so a round has each key once and is decided with whole columns. A group of writes of
different keys takes one round.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.lake.changelog import OP_FIELD, Op
from app.lake.commit_message import KeyConflict
from app.lake.dataset import DatasetDefinition, MergeMode
from app.lake.instant import RowCounts
from app.lake.operation import Operation
from app.lake.record_key import encode_keys
from app.lake.staging import JOB_COLUMN, ROW_COLUMN
from app.lake.write_plan import WriteIntent

KEYS_NAMED_MAX = 10
_ABSENT = -1
_TABLE = -1


@dataclass(frozen=True, kw_only=True)
class MergeResult:
    """`kept`: boolean over the current rows, true where the row stays as it is. `rows`: rows to add, in the
    dataset's columns. `changes`: `_hw_op` and the dataset's columns, in feed order. `counts`: by grouped write.
    """

    kept: np.ndarray
    rows: pa.Table
    changes: pa.Table
    counts: dict[int, RowCounts]
    conflicts: tuple[KeyConflict, ...]


def merge(
    dataset: DatasetDefinition, current: pa.Table, incoming: pa.Table, intents: Mapping[int, WriteIntent]
) -> MergeResult:
    """Merges grouped writes into the live rows of their keys.

    `current`: live rows, the dataset's columns, unique by key. `incoming`: the dataset's columns (nullable in a
    delete) with `_hw_job` and `_hw_row`, ordered by both. `intents`: by `_hw_job`.
    """
    state = _State.of(dataset, current, incoming, intents)
    for job, positions in state.rounds():
        state.play(job, positions)
    return state.result()


@dataclass(kw_only=True)
class _State:
    """The pool and what has been decided so far. Arrays over the pool are named `pool_…`, over keys `key_…`."""

    dataset: DatasetDefinition
    intents: Mapping[int, WriteIntent]
    pool: pa.Table
    current_rows: int
    pool_key: np.ndarray
    pool_order: np.ndarray
    pool_job: np.ndarray
    pool_row: np.ndarray
    key_live: np.ndarray
    outcomes: dict[str, list[np.ndarray]] = field(default_factory=dict)
    events: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=list)
    refused: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        dataset: DatasetDefinition,
        current: pa.Table,
        incoming: pa.Table,
        intents: Mapping[int, WriteIntent],
    ) -> _State:
        columns = dataset.schema.names()
        relaxed = pa.schema([entry.with_nullable(True) for entry in dataset.schema.to_arrow()])
        pool = pa.concat_tables(
            [current.select(columns).cast(relaxed), incoming.select(columns).cast(relaxed)]
        )
        pool_key, keys = _key_numbers(pool, dataset.record_key)
        rows = current.num_rows
        key_live = np.full(keys, _ABSENT, dtype=np.int64)
        key_live[pool_key[:rows]] = np.arange(rows)
        absent = np.full(rows, _TABLE, dtype=np.int64)
        return cls(
            dataset=dataset,
            intents=intents,
            pool=pool,
            current_rows=rows,
            pool_key=pool_key,
            pool_order=_order_ranks(pool, dataset),
            pool_job=np.concatenate([absent, incoming.column(JOB_COLUMN).to_numpy().astype(np.int64)]),
            pool_row=np.concatenate([absent, incoming.column(ROW_COLUMN).to_numpy().astype(np.int64)]),
            key_live=key_live,
        )

    def rounds(self) -> list[tuple[Operation, np.ndarray]]:
        """(operation, pool positions) pairs: each key once per round, each key's writes in order of acceptance."""
        positions = self._combined()
        keys = self.pool_key[positions]
        by_key = np.lexsort((self.pool_job[positions], keys))
        starts = np.flatnonzero(np.diff(keys[by_key], prepend=-1))
        lengths = np.diff(np.append(starts, len(by_key)))
        turn = np.empty(len(positions), dtype=np.int64)
        turn[by_key] = np.arange(len(by_key)) - np.repeat(starts, lengths)
        rounds = []
        for number in range(int(turn.max(initial=-1)) + 1):
            members = positions[turn == number]
            for operation in dict.fromkeys(intent.operation for intent in self.intents.values()):
                jobs = [job for job, intent in self.intents.items() if intent.operation is operation]
                chosen = members[np.isin(self.pool_job[members], jobs)]
                if len(chosen):
                    rounds.append((operation, chosen))
        return rounds

    def _combined(self) -> np.ndarray:
        """Pool positions of the one row per (write, key) that counts; the others are unchanged by definition."""
        positions = np.arange(self.current_rows, len(self.pool_key))
        order = self.pool_order[positions].copy()
        deletes = [job for job, intent in self.intents.items() if intent.operation is Operation.DELETE]
        # A delete without an ordering value always wins, so it stands above every value of its own write.
        order[np.isin(self.pool_job[positions], deletes) & (order < 0)] = np.iinfo(np.int64).max
        ranked = np.lexsort(
            (self.pool_row[positions], order, self.pool_job[positions], self.pool_key[positions])
        )
        jobs, keys = self.pool_job[positions][ranked], self.pool_key[positions][ranked]
        last = (
            np.append((np.diff(jobs) != 0) | (np.diff(keys) != 0), True)
            if len(ranked)
            else np.zeros(0, dtype=bool)
        )
        self._note("unchanged", positions[ranked[~last]])
        return np.sort(positions[ranked[last]])

    def play(self, operation: Operation, positions: np.ndarray) -> None:
        """Applies one operation to distinct keys."""
        live = self.key_live[self.pool_key[positions]]
        present = live != _ABSENT
        if operation is Operation.DELETE:
            self._delete(positions, live, present)
            return
        self._insert(positions[~present])
        if operation.refuses_live_keys:
            self.refused.append((positions[present], live[present]))
        else:
            self._update(positions[present], live[present])

    def _insert(self, positions: np.ndarray) -> None:
        self.key_live[self.pool_key[positions]] = positions
        self._emit(positions, Op.APPEND, positions)
        self._note("inserted", positions)

    def _update(self, positions: np.ndarray, live: np.ndarray) -> None:
        if self.dataset.merge_mode is MergeMode.EVENT_TIME:
            late = self.pool_order[positions] < self.pool_order[live]
        else:
            late = np.zeros(len(positions), dtype=bool)
        same = np.zeros(len(positions), dtype=bool)
        same[~late] = self._equal(live[~late], positions[~late])
        changed = ~late & ~same
        self._note("unchanged", positions[~changed])
        winners, losers = positions[changed], live[changed]
        self.key_live[self.pool_key[winners]] = winners
        self._emit(winners, Op.CORRECT_FROM, losers)
        self._emit(winners, Op.CORRECT_TO, winners)
        self._note("updated", winners)

    def _delete(self, positions: np.ndarray, live: np.ndarray, present: np.ndarray) -> None:
        applies = present.copy()
        if self.dataset.merge_mode is MergeMode.EVENT_TIME:
            order = self.pool_order[positions]
            applies &= (order < 0) | (order >= self.pool_order[live])
        self._note("unchanged", positions[~applies])
        gone = positions[applies]
        self.key_live[self.pool_key[gone]] = _ABSENT
        self._emit(gone, Op.RETRACT, live[applies])
        self._note("deleted", gone)

    def _equal(self, before: np.ndarray, after: np.ndarray) -> np.ndarray:
        """Whether two rows of the pool hold the same values, column by column, null equal to null."""
        equal = np.ones(len(before), dtype=bool)
        one, other = _gather(self.pool, before), _gather(self.pool, after)
        for name in self.pool.column_names:
            if not equal.any():
                break
            equal &= _equal_values(one.column(name), other.column(name))
        return equal

    def _note(self, outcome: str, positions: np.ndarray) -> None:
        self.outcomes.setdefault(outcome, []).append(positions)

    def _emit(self, causes: np.ndarray, op: Op, rows: np.ndarray) -> None:
        self.events.append((causes, np.full(len(causes), op, dtype=np.uint8), rows))

    def result(self) -> MergeResult:
        live = self.key_live[self.key_live >= self.current_rows]
        kept = self.key_live[self.pool_key[: self.current_rows]] == np.arange(self.current_rows)
        schema = self.dataset.schema.to_arrow()
        return MergeResult(
            kept=kept,
            rows=_gather(self.pool, np.sort(live)).cast(schema),
            changes=self._changes(schema),
            counts=self._counts(),
            conflicts=self._conflicts(),
        )

    def _changes(self, schema: pa.Schema) -> pa.Table:
        """Changes in the order of the rows that caused them, so a key's changes stand in order of acceptance."""
        causes = np.concatenate([part[0] for part in self.events] or [np.zeros(0, dtype=np.int64)])
        ops = np.concatenate([part[1] for part in self.events] or [np.zeros(0, dtype=np.uint8)])
        rows = np.concatenate([part[2] for part in self.events] or [np.zeros(0, dtype=np.int64)])
        order = np.lexsort((ops, causes))
        table = _gather(self.pool, rows[order]).cast(schema)
        return table.add_column(0, OP_FIELD, pa.array(ops[order]))

    def _counts(self) -> dict[int, RowCounts]:
        jobs = sorted(self.intents)
        totals = {job: dict.fromkeys(RowCounts.__struct_fields__, 0) for job in jobs}
        for outcome, parts in self.outcomes.items():
            counted = np.bincount(self.pool_job[np.concatenate(parts)], minlength=max(jobs, default=0) + 1)
            for job in jobs:
                totals[job][outcome] = int(counted[job])
        return {job: RowCounts(**totals[job]) for job in jobs}

    def _conflicts(self) -> tuple[KeyConflict, ...]:
        positions = np.concatenate([part[0] for part in self.refused] or [np.zeros(0, dtype=np.int64)])
        live = np.concatenate([part[1] for part in self.refused] or [np.zeros(0, dtype=np.int64)])
        conflicts = []
        for job in np.unique(self.pool_job[positions]):
            mine = self.pool_job[positions] == job
            named = self.pool.select(list(self.dataset.record_key)).take(
                pa.array(positions[mine][:KEYS_NAMED_MAX])
            )
            blamed = tuple(int(other) for other in np.unique(self.pool_job[live[mine]]))
            keys = tuple({name: _plain(value) for name, value in row.items()} for row in named.to_pylist())
            conflicts.append(KeyConflict(job=int(job), blamed=blamed, keys=keys, count=int(mine.sum())))
        return tuple(conflicts)


def _key_numbers(pool: pa.Table, key: Sequence[str]) -> tuple[np.ndarray, int]:
    """A dense number per distinct key, for every row, and how many keys there are."""
    encoded = encode_keys(pool, key).combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _order_ranks(pool: pa.Table, dataset: DatasetDefinition) -> np.ndarray:
    """The dense rank of every row's ordering value: int64, -1 for null. Without an ordering field, all 0."""
    if dataset.ordering_field is None or dataset.merge_mode is not MergeMode.EVENT_TIME:
        return np.zeros(pool.num_rows, dtype=np.int64)
    values = pool.column(dataset.ordering_field)
    ranks: np.ndarray = pc.rank(values, tiebreaker="dense").to_numpy().astype(np.int64)
    ranks[values.is_null().to_numpy()] = -1
    return ranks


def _equal_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_nested(one.type):
        # Arrow has no kernel that compares nested values.
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.fromiter((left == right for left, right in pairs), dtype=bool, count=len(one))
    same = pc.fill_null(pc.equal(one, other), False)
    if one.null_count and other.null_count:
        same = pc.or_(same, pc.and_(one.is_null(), other.is_null()))
    flags: np.ndarray = same.to_numpy()
    return flags


def _gather(table: pa.Table, rows: np.ndarray) -> pa.Table:
    """The rows in that order; without a copy where they stand in it already, as in a load of new keys."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return table.slice(int(rows[0]), len(rows))
    return table.take(pa.array(rows))


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int | str) else str(value)
