"""The key merger: applies the key mutations of grouped writes to the live rows of their keys.

It works in rounds. Round n has the n-th mutation of every key, so a round has each key once and is decided with whole
columns. A group of writes with different keys takes one round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa

from app.kernel.commit.merge.fold import Fold
from app.kernel.commit.merge.key_mutations import KeyMutations
from app.kernel.commit.merge.numbered_rows import NumberedRows
from app.kernel.commit.merge.values import equal_rows
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import MergeMode
from app.kernel.format.rows.changelog import Op

ABSENT: Final = -1
TABLE: Final = -1


class MatchAction(IntEnum):
    """The action of a write when its row matches a live row. From REFUSE on, the live row is never changed."""

    MERGE = 0
    REPLACE = 1
    REFUSE = 2
    DROP = 3
    QUARANTINE = 4

    @classmethod
    def of(cls, intent: WriteIntent) -> MatchAction:
        if intent.operation.replaces:
            return cls.REPLACE
        if not intent.operation.refuses_live_keys:
            return cls.MERGE
        if intent.drop_duplicates:
            return cls.DROP
        return cls.QUARANTINE if intent.quarantine else cls.REFUSE


@dataclass(kw_only=True, slots=True)
class KeyState:
    """The state of every key (int64 arrays by key number): `live`, the number of its row or ABSENT; the `order` of that
    row; the `job` that wrote it, or TABLE.
    """

    live: np.ndarray
    order: np.ndarray
    job: np.ndarray

    @classmethod
    def of(cls, keys: int, current_keys: np.ndarray, current_order: np.ndarray) -> KeyState:
        live = np.full(keys, ABSENT, dtype=np.int64)
        live[current_keys] = np.arange(len(current_keys))
        order = np.zeros(keys, dtype=np.int64)
        order[current_keys] = current_order
        return cls(live=live, order=order, job=np.full(keys, TABLE, dtype=np.int64))

    def put(self, keys: np.ndarray, rows: np.ndarray, order: np.ndarray, job: np.ndarray) -> None:
        self.live[keys] = rows
        self.order[keys] = order
        self.job[keys] = job


@dataclass(kw_only=True)
class KeyMerger:
    """Merges mutations into key states and records the decisions.

    `events`: (causes, op, row numbers, jobs), unordered. `outcomes`: jobs of rows, by the name of the outcome.
    `refusals`: (causes, jobs of the live rows). `quarantine`: mutations whose rows are quarantined because their key is
    live. `overflowing`: by field, mutations that are not applied because of its sum. `quarantining` (bool, by job): the
    writes that quarantine such rows.
    """

    mode: MergeMode
    fold: Fold | None
    rows: NumberedRows
    mutations: KeyMutations
    key_state: KeyState
    actions: np.ndarray
    quarantining: np.ndarray
    events: list[tuple[np.ndarray, Op, np.ndarray, np.ndarray]] = field(default_factory=list)
    outcomes: dict[str, list[np.ndarray]] = field(default_factory=dict)
    refusals: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    quarantine: list[np.ndarray] = field(default_factory=list)
    overflowing: list[tuple[str, np.ndarray]] = field(default_factory=list)

    def run(self) -> None:
        """Applies all mutations."""
        for number in self._rounds():
            self._round(number)

    def retract(self, keys: np.ndarray, job: int, first_cause: int) -> None:
        """Retracts the live rows of the keys for a write that does not name them; `first_cause` is the cause of the
        first.
        """
        jobs = np.full(len(keys), job, dtype=np.int64)
        self._emit(first_cause + np.arange(len(keys)), Op.RETRACT, self.key_state.live[keys], jobs)
        self.key_state.live[keys] = ABSENT
        self.record("deleted", jobs)

    def record(self, outcome: str, jobs: np.ndarray) -> None:
        self.outcomes.setdefault(outcome, []).append(jobs)

    def _rounds(self) -> list[np.ndarray]:
        keys = self.mutations.key
        if len(keys) == 0:
            return []
        if np.bincount(keys).max() == 1:
            return [np.arange(len(keys))]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        number = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        by_round = np.argsort(number, kind="stable")
        return np.split(by_round, np.flatnonzero(np.diff(number[by_round])) + 1)

    def _round(self, mutations: np.ndarray) -> None:
        """Applies mutations of distinct keys."""
        key, puts = self.mutations.key[mutations], self.mutations.puts[mutations]
        present = self.key_state.live[key] != ABSENT
        resets = present & (self.mutations.reset[mutations] >= self.key_state.order[key])
        action = self.actions[self.mutations.job[mutations]]
        self._delete(mutations[~puts & resets])
        self.record("unchanged", self.mutations.job[mutations[~puts & ~resets]])
        self._insert(mutations[puts & ~present])
        matches = puts & present
        self._refuse(mutations, matches & (action >= MatchAction.REFUSE), action)
        matches &= action < MatchAction.REFUSE
        overwrites = resets | (action == MatchAction.REPLACE)
        self._replace(mutations[matches & overwrites])
        self._merge(mutations[matches & ~overwrites])

    def _delete(self, mutations: np.ndarray) -> None:
        key, job = self.mutations.key[mutations], self.mutations.job[mutations]
        self._emit(self.mutations.cause[mutations], Op.RETRACT, self.key_state.live[key], job)
        self.key_state.live[key] = ABSENT
        self.record("deleted", job)

    def _insert(self, mutations: np.ndarray) -> None:
        if self._checks(mutations):
            mutations = mutations[self._fits(mutations, self.rows.gather(self.mutations.row[mutations]))]
        row, job = self.mutations.row[mutations], self.mutations.job[mutations]
        self.key_state.put(self.mutations.key[mutations], row, self.mutations.order[mutations], job)
        self._emit(self.mutations.cause[mutations], Op.APPEND, row, job)
        self.record("inserted", job)

    def _refuse(self, mutations: np.ndarray, matches: np.ndarray, action: np.ndarray) -> None:
        conflicts = mutations[matches & (action == MatchAction.REFUSE)]
        self.refusals.append(
            (self.mutations.cause[conflicts], self.key_state.job[self.mutations.key[conflicts]])
        )
        self.record("unchanged", self.mutations.job[mutations[matches & (action == MatchAction.DROP)]])
        self.quarantine.append(mutations[matches & (action == MatchAction.QUARANTINE)])

    def _merge(self, mutations: np.ndarray) -> None:
        """Applies mutations by the rule of the merge mode."""
        if self.mode is MergeMode.COMMIT_TIME:
            self._replace(mutations)
        elif self.mode is MergeMode.FIRST:
            self.record("unchanged", self.mutations.job[mutations])
        elif self.fold is not None:
            self._fold(mutations, self.fold)
        else:
            late = self.mutations.order[mutations] < self.key_state.order[self.mutations.key[mutations]]
            self.record("unchanged", self.mutations.job[mutations[late]])
            self._replace(mutations[~late])

    def _replace(self, mutations: np.ndarray) -> None:
        if self._checks(mutations):
            mutations = mutations[self._fits(mutations, self.rows.gather(self.mutations.row[mutations]))]
        row = self.mutations.row[mutations]
        before = self.rows.gather(self.key_state.live[self.mutations.key[mutations]])
        differs = ~equal_rows(before, self.rows.gather(row))
        self.record("unchanged", self.mutations.job[mutations[~differs]])
        self._correct(mutations[differs], row[differs], self.mutations.order[mutations[differs]])

    def _fold(self, mutations: np.ndarray, fold: Fold) -> None:
        if len(mutations) == 0:
            return
        key, order = self.mutations.key[mutations], self.mutations.order[mutations]
        newer = order >= self.key_state.order[key]
        before = self.rows.gather(self.key_state.live[key])
        after = fold.combine(before, self.rows.gather(self.mutations.row[mutations]), newer)
        if self._checks(mutations):
            fits = self._fits(mutations, after)
            mutations, key, order = mutations[fits], key[fits], order[fits]
            before, after = before.filter(pa.array(fits)), after.filter(pa.array(fits))
        differs = ~equal_rows(before, after)
        self.record("unchanged", self.mutations.job[mutations[~differs]])
        row = self.rows.add(after.filter(pa.array(differs)))
        self._correct(mutations[differs], row, np.maximum(order, self.key_state.order[key])[differs])

    def _checks(self, mutations: np.ndarray) -> bool:
        """Whether some of the mutations are quarantined if their sums overflow."""
        return self.fold is not None and bool(self.quarantining[self.mutations.job[mutations]].any())

    def _fits(self, mutations: np.ndarray, after: pa.Table) -> np.ndarray:
        """Which mutations are applied (bool), where they make the rows of `after`. The others are quarantined.

        A mutation of a write that does not quarantine is applied: its overflow is found in the changes.
        """
        quarantines = self.quarantining[self.mutations.job[mutations]]
        fits = np.ones(len(mutations), dtype=bool)
        for name, beyond in self.fold.overflows(after).items() if self.fold is not None else ():
            self.overflowing.append((name, mutations[beyond & quarantines & fits]))
            fits &= ~(beyond & quarantines)
        return fits

    def _correct(self, mutations: np.ndarray, row: np.ndarray, order: np.ndarray) -> None:
        key, job, cause = (
            self.mutations.key[mutations],
            self.mutations.job[mutations],
            self.mutations.cause[mutations],
        )
        self._emit(cause, Op.CORRECT_FROM, self.key_state.live[key], job)
        self._emit(cause, Op.CORRECT_TO, row, job)
        self.key_state.put(key, row, order, job)
        self.record("updated", job)

    def _emit(self, causes: np.ndarray, op: Op, rows: np.ndarray, jobs: np.ndarray) -> None:
        self.events.append((causes, op, rows, jobs))


def quarantining(intents: Mapping[int, WriteIntent]) -> np.ndarray:
    """Whether each write quarantines rows (bool, by job number)."""
    flags = np.zeros(max(intents, default=0) + 1, dtype=bool)
    for job, intent in intents.items():
        flags[job] = intent.quarantine
    return flags


def match_actions(intents: Mapping[int, WriteIntent]) -> np.ndarray:
    """The actions by job number."""
    actions = np.zeros(max(intents, default=0) + 1, dtype=np.int64)
    for job, intent in intents.items():
        actions[job] = MatchAction.of(intent)
    return actions
