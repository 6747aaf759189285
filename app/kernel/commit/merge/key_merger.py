"""The key merger: applies the rows of grouped writes to the states of their keys.

A unit has the rows of one write and key. They are applied one by one (`key_steps`), and the feed gets the difference
between the states before and after the unit. Round n has the n-th unit of every key, so that a group of writes with
different keys takes one round.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from app.kernel.commit.merge.fold import Fold
from app.kernel.commit.merge.incoming_rows import IncomingRows, JobFacts, MatchAction, UnitRows, Units
from app.kernel.commit.merge.kept_fields import KeptFields
from app.kernel.commit.merge.key_steps import (
    ALWAYS,
    LIVE,
    NO_ORDER,
    NOTHING,
    TOMBSTONE,
    UNMADE,
    KeySteps,
    States,
)
from app.kernel.commit.merge.numbered_rows import NumberedRows
from app.kernel.commit.merge.values import equal_rows
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.tombstones import last_times

TABLE: Final = -1
NO_ROW: Final = -1


@dataclass(kw_only=True, slots=True)
class KeyTable:
    """The state of every key, by key number.

    `job` (int64): the job that made the state, or TABLE. `until` (int64): the last time at which a row is compared with
    the tombstone, in microseconds since 1970. The row of a tombstone of the table is its number among these.
    """

    states: States
    job: np.ndarray
    until: np.ndarray

    @classmethod
    def of(
        cls,
        keys: int,
        live: tuple[np.ndarray, np.ndarray],
        tombstones: tuple[np.ndarray, np.ndarray],
        until: np.ndarray,
    ) -> KeyTable:
        """`live`, `tombstones`: the key and the order of each."""
        states = States(
            kind=np.full(keys, NOTHING, dtype=np.uint8),
            order=np.full(keys, NO_ORDER, dtype=np.int64),
            row=np.full(keys, NO_ROW, dtype=np.int64),
            cause=np.full(keys, UNMADE, dtype=np.int64),
        )
        expiry = np.full(keys, ALWAYS, dtype=np.int64)
        for kind, (key, order) in ((TOMBSTONE, tombstones), (LIVE, live)):
            states.kind[key] = kind
            states.order[key] = order
            states.row[key] = np.arange(len(key))
        expiry[tombstones[0]] = until
        return cls(states=states, job=np.full(keys, TABLE, dtype=np.int64), until=expiry)

    def put(self, keys: np.ndarray, states: States, jobs: np.ndarray, until: np.ndarray) -> None:
        for name in ("kind", "order", "row", "cause"):
            getattr(self.states, name)[keys] = getattr(states, name)
        self.job[keys] = jobs
        self.until[keys] = until


@dataclass(kw_only=True)
class KeyMerger:
    """Merges units into key states and records the decisions.

    `events`: (causes, op, row numbers, jobs), unordered. `outcomes`: jobs of rows, by the name of the outcome.
    `refusals`: (causes, jobs of the live rows). `quarantine`: positions of rows that are quarantined because their key
    is live. `overflowing`: by field, positions of rows that are not applied because of its sum. `valid_until`: the
    least time until which a tombstone of the table is compared with rows; ALWAYS if none was.
    """

    fold: Fold | None
    ordered: bool
    rows: NumberedRows
    incoming: IncomingRows
    steps: KeySteps
    units: Units
    table: KeyTable
    facts: JobFacts
    kept: KeptFields | None = None
    events: list[tuple[np.ndarray, Op, np.ndarray, np.ndarray]] = field(default_factory=list)
    outcomes: dict[str, list[np.ndarray]] = field(default_factory=dict)
    refusals: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    quarantine: list[np.ndarray] = field(default_factory=list)
    overflowing: list[tuple[str, np.ndarray]] = field(default_factory=list)
    valid_until: int = ALWAYS

    def run(self) -> None:
        """Applies all rows."""
        for units in self.units.rounds():
            self._round(units)

    def retract(self, keys: np.ndarray, job: int, first_cause: int) -> None:
        """Retracts the live rows of the keys for a write that does not name them; `first_cause` is the cause of the
        first.
        """
        jobs = np.full(len(keys), job, dtype=np.int64)
        self._emit(first_cause + np.arange(len(keys)), Op.RETRACT, self.table.states.row[keys], jobs)
        self.table.states.kind[keys] = NOTHING
        self.record("deleted", jobs)

    def record(self, outcome: str, jobs: np.ndarray) -> None:
        self.outcomes.setdefault(outcome, []).append(jobs)

    def _round(self, units: np.ndarray) -> None:
        """Applies units of distinct keys."""
        key, job = self.units.key[units], self.units.job[units]
        before = self._states_of(key, job)
        refused = (before.kind == LIVE) & (self.facts.action[job] >= MatchAction.REFUSE)
        members = self.units.members(units)
        run = _UnitRun.of(self, members, before.without(refused), job)
        after = run.after.at(members.last)
        if refused.any():
            self._refuse(run, refused, key, job, after)
        applied = ~refused
        after = self._merged_rows(run, before, after, applied)
        after = self._with_kept_fields(run, after, applied, job)
        if self.fold is not None and self.facts.quarantines[job].any():
            applied = self._fitting(run, applied, after, job)
        changed = self._publish(before, after, applied, job)
        self._count(run, applied, changed, after)
        # Equal values keep the row that has them.
        kept = applied & (before.kind == LIVE) & (after.kind == LIVE) & ~changed
        row = np.where(kept, before.row, after.row)
        made = applied & (after.cause != UNMADE)
        states = States(kind=after.kind, order=after.order, row=row, cause=after.cause)
        until = np.where(
            after.kind == TOMBSTONE,
            last_times(self.facts.committed_at[job], self.facts.keep_seconds[job]),
            ALWAYS,
        )
        jobs = np.where(kept, self.table.job[key], job)
        self.table.put(key[made], states.at(made), jobs[made], until[made])

    def _states_of(self, key: np.ndarray, job: np.ndarray) -> States:
        """The states of the keys for these jobs. A tombstone whose time is over is nothing."""
        states = self.table.states.at(key)
        is_tombstone = states.kind == TOMBSTONE
        if is_tombstone.any():
            until = self.table.until[key]
            expired = is_tombstone & (until < self.facts.committed_at[job])
            compared = is_tombstone & ~expired & (self.table.job[key] == TABLE)
            self.valid_until = min(self.valid_until, int(until[compared].min(initial=ALWAYS)))
            states = states.without(expired)
        return States(
            kind=states.kind,
            order=states.order,
            row=states.row,
            cause=np.full(len(key), UNMADE, dtype=np.int64),
        )

    def _refuse(
        self, run: _UnitRun, refused: np.ndarray, key: np.ndarray, job: np.ndarray, after: States
    ) -> None:
        """Refuses, drops or quarantines units of inserts whose key is live."""
        action = self.facts.action[job]
        conflicts = refused & (action == MatchAction.REFUSE)
        self.refusals.append((after.cause[conflicts], self.table.job[key[conflicts]]))
        quarantined = refused & (action == MatchAction.QUARANTINE)
        # Rows that would have been folded are quarantined as they are; of others the one that would count.
        positions = after.cause[quarantined]
        if self.fold is not None:
            positions = run.members.row[quarantined[run.members.unit]]
        self.quarantine.append(positions)
        rest = run.members.row[refused[run.members.unit] & ~conflicts[run.members.unit]]
        self.record("unchanged", self.incoming.job[np.setdiff1d(rest, positions)])

    def _merged_rows(self, run: _UnitRun, before: States, after: States, applied: np.ndarray) -> States:
        """The states after the units, with the rows that a fold made."""
        if self.fold is None:
            return after
        places, begins = run.life(after, applied)
        if not len(places):
            return after
        rows = self._folded(run, places, begins, before)
        units = run.members.unit[places[_starts(run.members.unit[places])]]
        row, cause = after.row.copy(), after.cause.copy()
        row[units] = rows
        cause[units] = run.members.row[places[_ends(run.members.unit[places])]]
        return States(kind=after.kind, order=after.order, row=row, cause=cause)

    def _with_kept_fields(self, run: _UnitRun, after: States, applied: np.ndarray, job: np.ndarray) -> States:
        """The states after the units, with the values that their rows keep. In a fold, a null already keeps the value,
        but not in a row that replaces any other.
        """
        if self.kept is None:
            return after
        puts = applied & (after.kind == LIVE) & (after.cause != UNMADE)
        if self.fold is not None:
            puts &= self.facts.by_arrival[job]
        units = np.flatnonzero(puts)
        units = units[self.kept.any[after.cause[units]]]
        if not len(units):
            return after
        row = after.row.copy()
        row[units] = self.kept.resolved(
            self.rows, self.incoming.number, run.members, run.before, after.cause[units]
        )
        return States(kind=after.kind, order=after.order, row=row, cause=after.cause)

    def _folded(self, run: _UnitRun, places: np.ndarray, begins: np.ndarray, before: States) -> np.ndarray:
        """The numbers of the rows that these members make, one for each of their units.

        `places`: the members. `begins` (bool): by unit, whether its first member begins a new row, so that the live row
        is no part of it.
        """
        assert self.fold is not None
        unit = run.members.unit[places]
        starts = _starts(unit)
        own = unit[starts]
        number = self.incoming.number[run.members.row[places]]
        newer = run.wins[places]
        single = _ends(unit) == starts
        result = np.empty(len(own), dtype=np.int64)
        alone = single & begins[own]
        result[alone] = number[starts[alone]]
        pair = single & ~begins[own]
        if pair.any():
            at = starts[pair]
            rows = self.fold.combine(
                self.rows.gather(before.row[own[pair]]), self.rows.gather(number[at]), newer[at]
            )
            result[pair] = self.rows.add(rows)
        if not single.all():
            # The live row, if it is a part of the new one, comes first.
            several = np.flatnonzero(~single)
            with_base = several[~begins[own[several]]]
            rest = np.flatnonzero(np.repeat(~single, np.diff(np.append(starts, len(unit)))))
            segments = np.concatenate([own[with_base], unit[rest]])
            numbers = np.concatenate([before.row[own[with_base]], number[rest]])
            late = np.concatenate([np.zeros(len(with_base), dtype=bool), ~newer[rest]])
            order = np.argsort(segments, kind="stable")
            rows = self.fold.combine_in_order(self.rows.gather(numbers[order]), segments[order], late[order])
            result[several] = self.rows.add(rows)
        return result

    def _fitting(self, run: _UnitRun, applied: np.ndarray, after: States, job: np.ndarray) -> np.ndarray:
        """The units that are applied (bool). The others are quarantined, because a sum of theirs overflows.

        A unit of a write that does not quarantine is applied: its overflow is found in the changes.
        """
        assert self.fold is not None
        candidates = np.flatnonzero(
            applied & self.facts.quarantines[job] & (after.kind == LIVE) & (after.cause != UNMADE)
        )
        fits = applied.copy()
        for name, beyond in self.fold.overflows(self.rows.gather(after.row[candidates])).items():
            units = candidates[beyond & fits[candidates]]
            fits[units] = False
            self.overflowing.append((name, run.members.row[np.isin(run.members.unit, units)]))
        return fits

    def _publish(self, before: States, after: States, applied: np.ndarray, job: np.ndarray) -> np.ndarray:
        """Emits the changes of the units, and returns which changed a row of the table (bool)."""
        was_live, is_live = before.kind == LIVE, after.kind == LIVE
        made = applied & (after.cause != UNMADE)
        changed: np.ndarray = made & (was_live ^ is_live)
        self._change("deleted", Op.RETRACT, changed & was_live, before.row, after, job)
        self._change("inserted", Op.APPEND, changed & is_live, after.row, after, job)
        both = np.flatnonzero(made & was_live & is_live)
        if len(both):
            differs = ~equal_rows(self.rows.gather(before.row[both]), self.rows.gather(after.row[both]))
            both = both[differs]
            changed[both] = True
            self._emit(after.cause[both], Op.CORRECT_FROM, before.row[both], job[both])
            self._emit(after.cause[both], Op.CORRECT_TO, after.row[both], job[both])
            self.record("updated", job[both])
        return changed

    def _change(
        self, outcome: str, op: Op, units: np.ndarray, row: np.ndarray, after: States, job: np.ndarray
    ) -> None:
        if units.any():
            self._emit(after.cause[units], op, row[units], job[units])
            self.record(outcome, job[units])

    def _count(self, run: _UnitRun, applied: np.ndarray, changed: np.ndarray, after: States) -> None:
        """Counts the rows of applied units that have no effect of their own, as late or unchanged."""
        unit, row = run.members.unit, run.members.row
        counted = applied[unit] & ~(changed[unit] & (row == after.cause[unit]))
        if not counted.any():
            return
        late = counted & run.late if self.ordered else np.zeros(len(row), dtype=bool)
        if self.fold is not None:
            # A late row of a live key is a part of what a unit changes.
            late &= ~changed[unit] | (run.before.kind == TOMBSTONE)
        self.record("late", self.incoming.job[row[late]])
        self.record("unchanged", self.incoming.job[row[counted & ~late]])

    def _emit(self, causes: np.ndarray, op: Op, rows: np.ndarray, jobs: np.ndarray) -> None:
        self.events.append((causes, op, rows, jobs))


@dataclass(frozen=True, kw_only=True, slots=True)
class _UnitRun:
    """The rows of some units, with the states before and after each.

    All are bool: `puts`: whether the row is put. `wins`: whether it takes the place of the state before it. `late`:
    whether it does not, because its ordering value is less. `replaces`: whether it takes the place of any state.
    """

    members: UnitRows
    before: States
    after: States
    puts: np.ndarray
    wins: np.ndarray
    late: np.ndarray
    replaces: np.ndarray

    @classmethod
    def of(cls, merger: KeyMerger, members: UnitRows, starts: States, job: np.ndarray) -> _UnitRun:
        """`starts`: the states before the units."""
        steps = merger.steps.at(members.row)
        firsts = (members.rank == 0) & (merger.facts.action[job] == MatchAction.REPLACE)[members.unit]
        if firsts.any():
            # The rows of a write that replaces are merged with each other alone.
            steps = KeySteps(
                reach=np.where(firsts, ALWAYS, steps.reach),
                state=steps.state,
                buries=steps.buries,
                burier=steps.burier,
            )
        before, after = steps.run(starts.at(members.unit), members.rank)
        wins = steps.wins(before)
        valued = (steps.reach != ALWAYS) & (steps.reach >= 0)
        return cls(
            members=members,
            before=before,
            after=after,
            puts=steps.state.kind == LIVE,
            wins=wins,
            late=valued & ~wins,
            replaces=steps.reach == ALWAYS,
        )

    def life(self, after: States, applied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows that are a part of the live rows after the units (int64), and by unit whether these
        rows begin a new one (bool).

        A new row begins where the key had no live row before, and with a row that replaces any other.
        """
        unit = self.members.unit
        begins = self.puts & self.wins & ((self.before.kind != LIVE) | self.replaces)
        first = self.members.greatest(np.flatnonzero(begins), len(applied))
        lives = (applied & (after.kind == LIVE))[unit]
        places = np.flatnonzero(lives & self.puts & (np.arange(len(unit)) >= first[unit]))
        return places, first >= 0


def _starts(unit: np.ndarray) -> np.ndarray:
    """The places of the first of each of these units, which are ascending (int64)."""
    return np.flatnonzero(np.diff(unit, prepend=-1))


def _ends(unit: np.ndarray) -> np.ndarray:
    """The places of the last of each of these units (int64)."""
    return np.flatnonzero(np.diff(unit, append=-1))
