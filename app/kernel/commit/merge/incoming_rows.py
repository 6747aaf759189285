"""The rows of grouped writes as steps of their keys, and the parts of the writes in which they are applied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

import numpy as np

from app.kernel.commit.merge.key_steps import (
    ALWAYS,
    LIVE,
    NEVER,
    NO_ORDER,
    NOTHING,
    TOMBSTONE,
    KeySteps,
    States,
)
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import MergeMode
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.tombstones import instant

_TAKING: Final = (Op.RETRACT, Op.CORRECT_FROM)


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


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFacts:
    """What is known of each write, by job number.

    `action` (int64), `quarantines` (bool), `by_arrival` (bool), `keep_seconds` (int64), `committed_at` (int64): of
    `WriteIntent`, the time in microseconds since 1970.
    """

    action: np.ndarray
    quarantines: np.ndarray
    by_arrival: np.ndarray
    keep_seconds: np.ndarray
    committed_at: np.ndarray

    @classmethod
    def of(cls, intents: Mapping[int, WriteIntent]) -> JobFacts:
        jobs = max(intents, default=0) + 1
        facts = cls(
            action=np.zeros(jobs, dtype=np.int64),
            quarantines=np.zeros(jobs, dtype=bool),
            by_arrival=np.zeros(jobs, dtype=bool),
            keep_seconds=np.zeros(jobs, dtype=np.int64),
            committed_at=np.zeros(jobs, dtype=np.int64),
        )
        for job, intent in intents.items():
            facts.action[job] = MatchAction.of(intent)
            facts.quarantines[job] = intent.quarantine
            facts.by_arrival[job] = intent.by_arrival
            facts.keep_seconds[job] = intent.keep_seconds
            facts.committed_at[job] = instant(intent.committed_at)
        return facts


@dataclass(frozen=True, kw_only=True, slots=True)
class IncomingRows:
    """Incoming rows by position (int64 by default): `key` numbers, `job`, `op` (uint8), and `order`: the rank of the
    ordering value, 0 for null. `number`: of each row among all rows of the merge.
    """

    key: np.ndarray
    job: np.ndarray
    op: np.ndarray
    order: np.ndarray
    number: np.ndarray

    def steps(self, facts: JobFacts, mode: MergeMode, *, ordered: bool) -> KeySteps:
        """The step of each row.

        A row that is put takes the place of a state that is not newer; under `first`, of nothing else. A delete with an
        ordering value does so, too, and one without a value buries the live row. Deletes that leave no tombstone put
        nothing in its place. Facts take the place of any state. The old row of a correction that is no fact has no
        effect where rows are `ordered`: its new row is compared.
        """
        by_arrival, keeps = facts.by_arrival[self.job], facts.keep_seconds[self.job] > 0
        reach = np.full(len(self.key), NO_ORDER) if mode is MergeMode.FIRST else self.order.copy()
        kind = np.full(len(self.key), LIVE, dtype=np.uint8)
        order = self.order
        buries = np.zeros(len(self.key), dtype=bool)
        takes = np.isin(self.op, _TAKING)
        if takes.any():
            reach[takes] = self.order[takes]
            corrected = (self.op == Op.CORRECT_FROM) & ~by_arrival
            unvalued = takes & (self.order == 0) & ~by_arrival & ~corrected
            buries = unvalued & keeps
            reach[unvalued] = np.where(keeps[unvalued], NEVER, ALWAYS)
            if ordered:
                reach[corrected] = NEVER
            kind[takes] = np.where((keeps & ~buries & ~corrected)[takes], TOMBSTONE, NOTHING)
            order = np.where(kind == NOTHING, NO_ORDER, order)
        reach[by_arrival] = ALWAYS
        positions = np.arange(len(self.key))
        return KeySteps(
            reach=reach,
            state=States(kind=kind, order=order, row=self.number, cause=positions),
            buries=buries,
            burier=positions,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Units:
    """The rows of one write and key, each a unit (int64): ordered by key, and for one key in order of acceptance.

    `rows`: the positions of all rows, unit by unit, in their order. `start`: the place of the first row of each unit in
    `rows`. `length`: the number of its rows.
    """

    key: np.ndarray
    job: np.ndarray
    rows: np.ndarray
    start: np.ndarray
    length: np.ndarray

    @classmethod
    def of(cls, rows: IncomingRows) -> Units:
        if len(rows.key) == 0 or np.bincount(rows.key).max() == 1:
            # No key occurs twice, as in most writes.
            positions = np.arange(len(rows.key))
            ones = np.ones(len(positions), dtype=np.int64)
            return cls(key=rows.key, job=rows.job, rows=positions, start=positions, length=ones)
        positions = np.argsort(rows.key, kind="stable")
        key, job = rows.key[positions], rows.job[positions]
        start = np.flatnonzero((np.diff(key, prepend=-1) != 0) | (np.diff(job, prepend=-1) != 0))
        return cls(
            key=key[start],
            job=job[start],
            rows=positions,
            start=start,
            length=np.diff(np.append(start, len(positions))),
        )

    def rounds(self) -> list[np.ndarray]:
        """The numbers of units in rounds: round n has the n-th unit of every key, so that a round has each key once."""
        if len(self.key) == 0:
            return []
        starts = np.flatnonzero(np.diff(self.key, prepend=-1))
        if len(starts) == len(self.key):
            return [np.arange(len(self.key))]
        number = np.arange(len(self.key)) - np.repeat(starts, np.diff(np.append(starts, len(self.key))))
        by_round = np.argsort(number, kind="stable")
        return np.split(by_round, np.flatnonzero(np.diff(number[by_round])) + 1)

    def members(self, units: np.ndarray) -> UnitRows:
        """The rows of these units, in their order."""
        length = self.length[units]
        if (length == 1).all():
            return UnitRows(
                row=self.rows[self.start[units]], unit=np.arange(len(units)), rank=np.zeros_like(length)
            )
        unit = np.repeat(np.arange(len(units)), length)
        rank = np.arange(len(unit)) - np.repeat(np.cumsum(length) - length, length)
        return UnitRows(row=self.rows[self.start[units][unit] + rank], unit=unit, rank=rank)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnitRows:
    """The rows of some units (int64): `row`: the position of each. `unit`: the place of its unit among these units,
    ascending. `rank`: the number of rows of the unit before it.
    """

    row: np.ndarray
    unit: np.ndarray
    rank: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """The place of the last row of each unit (int64)."""
        return np.flatnonzero(np.diff(self.unit, append=-1))

    def greatest(self, places: np.ndarray, units: int) -> np.ndarray:
        """By unit, the last of these places (int64, ascending) that is of the unit, or -1."""
        positions_by_unit = np.full(units, -1, dtype=np.int64)
        # Of several assignments to one element, the last one stays.
        positions_by_unit[self.unit[places]] = places
        return positions_by_unit
