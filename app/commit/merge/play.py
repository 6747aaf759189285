"""Play: the turns of grouped writes meet the live rows of their keys.

In rounds: round n holds every key's n-th turn, so a round has each key once and is decided with whole columns. A
group of writes of different keys takes one round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

import numpy as np
import pyarrow as pa

from app.commit.merge.fold import Fold
from app.commit.merge.numbered_rows import NumberedRows
from app.commit.merge.turns import Turns
from app.commit.merge.values import equal_rows
from app.commit.write_plan import WriteIntent
from app.format.dataset import MergeMode
from app.format.rows.changelog import Op

ABSENT: Final = -1
TABLE: Final = -1


class Meeting(IntEnum):
    """What a write wants done when its row meets a live one; those from REFUSE on never touch it."""

    MERGE = 0
    REPLACE = 1
    REFUSE = 2
    DROP = 3
    SET_ASIDE = 4

    @classmethod
    def of(cls, intent: WriteIntent) -> Meeting:
        if intent.operation.replaces:
            return cls.REPLACE
        if not intent.operation.refuses_live_keys:
            return cls.MERGE
        if intent.drop_duplicates:
            return cls.DROP
        return cls.SET_ASIDE if intent.quarantine else cls.REFUSE


@dataclass(kw_only=True, slots=True)
class Board:
    """Where every key stands (int64 arrays by key number): `live`, the number of its row or ABSENT; the `order` of that
    row; the `job` that put it there, or TABLE.
    """

    live: np.ndarray
    order: np.ndarray
    job: np.ndarray

    @classmethod
    def of(cls, keys: int, current_keys: np.ndarray, current_order: np.ndarray) -> Board:
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
class Play:
    """What has been decided so far.

    `events`: (causes, op, row numbers, jobs) in no order. `outcomes`: jobs of rows, by the name of what became of them.
    `refused`: (causes, jobs of the live rows). `aside`: turns whose rows are set aside.
    """

    mode: MergeMode
    fold: Fold | None
    rows: NumberedRows
    turns: Turns
    board: Board
    meetings: np.ndarray
    events: list[tuple[np.ndarray, Op, np.ndarray, np.ndarray]] = field(default_factory=list)
    outcomes: dict[str, list[np.ndarray]] = field(default_factory=dict)
    refused: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    aside: list[np.ndarray] = field(default_factory=list)

    def run(self) -> None:
        """Plays all turns."""
        for number in self._rounds():
            self._round(number)

    def retract(self, keys: np.ndarray, job: int, first_cause: int) -> None:
        """Takes the live rows of keys out for a write that did not name them; causes count on from `first_cause`."""
        jobs = np.full(len(keys), job, dtype=np.int64)
        self._emit(first_cause + np.arange(len(keys)), Op.RETRACT, self.board.live[keys], jobs)
        self.board.live[keys] = ABSENT
        self.note("deleted", jobs)

    def note(self, outcome: str, jobs: np.ndarray) -> None:
        self.outcomes.setdefault(outcome, []).append(jobs)

    def _rounds(self) -> list[np.ndarray]:
        keys = self.turns.key
        if len(keys) == 0:
            return []
        if np.bincount(keys).max() == 1:
            return [np.arange(len(keys))]
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        number = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
        by_round = np.argsort(number, kind="stable")
        return np.split(by_round, np.flatnonzero(np.diff(number[by_round])) + 1)

    def _round(self, turns: np.ndarray) -> None:
        """Plays turns of distinct keys."""
        key, puts = self.turns.key[turns], self.turns.puts[turns]
        present = self.board.live[key] != ABSENT
        resets = present & (self.turns.reset[turns] >= self.board.order[key])
        meeting = self.meetings[self.turns.job[turns]]
        self._delete(turns[~puts & resets])
        self.note("unchanged", self.turns.job[turns[~puts & ~resets]])
        self._insert(turns[puts & ~present])
        meets = puts & present
        self._refuse(turns, meets & (meeting >= Meeting.REFUSE), meeting)
        meets &= meeting < Meeting.REFUSE
        whole = resets | (meeting == Meeting.REPLACE)
        self._replace(turns[meets & whole])
        self._merge(turns[meets & ~whole])

    def _delete(self, turns: np.ndarray) -> None:
        key, job = self.turns.key[turns], self.turns.job[turns]
        self._emit(self.turns.cause[turns], Op.RETRACT, self.board.live[key], job)
        self.board.live[key] = ABSENT
        self.note("deleted", job)

    def _insert(self, turns: np.ndarray) -> None:
        row, job = self.turns.row[turns], self.turns.job[turns]
        self.board.put(self.turns.key[turns], row, self.turns.order[turns], job)
        self._emit(self.turns.cause[turns], Op.APPEND, row, job)
        self.note("inserted", job)

    def _refuse(self, turns: np.ndarray, meets: np.ndarray, meeting: np.ndarray) -> None:
        refused = turns[meets & (meeting == Meeting.REFUSE)]
        self.refused.append((self.turns.cause[refused], self.board.job[self.turns.key[refused]]))
        self.note("unchanged", self.turns.job[turns[meets & (meeting == Meeting.DROP)]])
        self.aside.append(turns[meets & (meeting == Meeting.SET_ASIDE)])

    def _merge(self, turns: np.ndarray) -> None:
        """By the rule of the merge mode."""
        if self.mode is MergeMode.COMMIT_TIME:
            self._replace(turns)
        elif self.mode is MergeMode.FIRST:
            self.note("unchanged", self.turns.job[turns])
        elif self.fold is not None:
            self._fold(turns, self.fold)
        else:
            late = self.turns.order[turns] < self.board.order[self.turns.key[turns]]
            self.note("unchanged", self.turns.job[turns[late]])
            self._replace(turns[~late])

    def _replace(self, turns: np.ndarray) -> None:
        row = self.turns.row[turns]
        before = self.rows.gather(self.board.live[self.turns.key[turns]])
        changed = ~equal_rows(before, self.rows.gather(row))
        self.note("unchanged", self.turns.job[turns[~changed]])
        self._correct(turns[changed], row[changed], self.turns.order[turns[changed]])

    def _fold(self, turns: np.ndarray, fold: Fold) -> None:
        if len(turns) == 0:
            return
        key, order = self.turns.key[turns], self.turns.order[turns]
        newer = order >= self.board.order[key]
        before = self.rows.gather(self.board.live[key])
        after = fold.meet(before, self.rows.gather(self.turns.row[turns]), newer)
        changed = ~equal_rows(before, after)
        self.note("unchanged", self.turns.job[turns[~changed]])
        row = self.rows.add(after.filter(pa.array(changed)))
        self._correct(turns[changed], row, np.maximum(order, self.board.order[key])[changed])

    def _correct(self, turns: np.ndarray, row: np.ndarray, order: np.ndarray) -> None:
        key, job, cause = self.turns.key[turns], self.turns.job[turns], self.turns.cause[turns]
        self._emit(cause, Op.CORRECT_FROM, self.board.live[key], job)
        self._emit(cause, Op.CORRECT_TO, row, job)
        self.board.put(key, row, order, job)
        self.note("updated", job)

    def _emit(self, causes: np.ndarray, op: Op, rows: np.ndarray, jobs: np.ndarray) -> None:
        self.events.append((causes, op, rows, jobs))


def meetings_of(intents: Mapping[int, WriteIntent]) -> np.ndarray:
    """By job number."""
    meetings = np.zeros(max(intents, default=0) + 1, dtype=np.int64)
    for job, intent in intents.items():
        meetings[job] = Meeting.of(intent)
    return meetings
