"""The reference model: a merge spelled out row by row over a dict, independent of the columnar one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from app.kernel.format.dataset import Aggregate, DatasetDefinition, MergeMode
from app.kernel.format.operation import Operation
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.rows.changelog import Op

Row = dict[str, Any]
RowChange = tuple[int, Row]
Key = tuple[Any, ...]


class Overflow(Exception):
    """A sum does not fit its field."""


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write: its rows, each with what it does to its key. `drop`, `quarantine`: of live keys, by an insert.

    `rest`: keys of live rows to take out unless the rows name them. `by_arrival`: its rows are facts. `keep`: how long
    its deletes keep older rows away, 0 for not at all. `at`: the time of its commit, in seconds.
    """

    operation: Operation
    rows: Sequence[RowChange]
    drop: bool = False
    quarantine: bool = False
    rest: frozenset[Key] | None = None
    by_arrival: bool = False
    keep: int = 0
    at: int = 0


@dataclass(frozen=True, kw_only=True)
class Tombstone:
    """What a delete left: its order, and the last time at which a row is compared with it."""

    order: tuple[int, Any]
    until: int
    keep: int


@dataclass(kw_only=True)
class KeyState:
    """The live row of a key, or its tombstone, or nothing.

    `cause`: the place of the last row that had an effect. `late`: the places of late rows, and whether a tombstone kept
    the row away.
    """

    row: Row | None
    tombstone: Tombstone | None
    cause: int | None = None
    late: dict[int, bool] = field(default_factory=dict)


@dataclass(kw_only=True)
class Table:
    """A keyed table with the feed of everything that happened to it."""

    dataset: DatasetDefinition
    live: dict[Key, Row] = field(default_factory=dict)
    feed: list[tuple[int, Row]] = field(default_factory=list)
    tombstones: dict[Key, Tombstone] = field(default_factory=dict)

    def key(self, row: Row) -> Key:
        return tuple(row[name] for name in self.dataset.record_key)

    def plain(self, operation: Operation, rows: Sequence[Row]) -> Write:
        """A write without options, whose rows do to their keys what its operation does."""
        marker = self.dataset.delete_marker if operation is Operation.UPSERT else None
        deletes = [operation is Operation.DELETE or (marker is not None and row[marker]) for row in rows]
        ops = [Op.RETRACT if each else Op.APPEND for each in deletes]
        return Write(operation=operation, rows=list(zip(ops, rows, strict=True)))

    def conflicts(self, operation: Operation, rows: Sequence[Row]) -> bool:
        """Whether a write without options would fail."""
        return self.refuses(self.plain(operation, rows))

    def apply(self, operation: Operation, rows: Sequence[Row]) -> dict[str, int]:
        """Applies a write without options and returns its counts."""
        return self.apply_write(self.plain(operation, rows))

    def copy(self) -> Table:
        """The same table with an empty feed."""
        return Table(dataset=self.dataset, live=dict(self.live), tombstones=dict(self.tombstones))

    def refuses(self, write: Write) -> bool:
        """Whether the write fails: an insert that would find a live key, or a sum out of range that fails it."""
        forgiving = write.drop or write.quarantine
        strict = write.operation.refuses_live_keys and not forgiving
        if strict and any(self.key(row) in self.live for _, row in write.rows):
            return True
        try:
            self.copy().apply_write(write)
        except Overflow:
            return True
        return False

    def apply_write(self, write: Write) -> dict[str, int]:
        """Applies one write and returns its counts. Raises Overflow, unless the write quarantines such rows."""
        counts = dict.fromkeys(("inserted", "updated", "deleted", "unchanged", "late", "quarantined"), 0)
        by_key: dict[Key, list[RowChange]] = {}
        overflowed: set[Key] = set()
        for change in write.rows:
            by_key.setdefault(self.key(change[1]), []).append(change)
        for key, rows in by_key.items():
            try:
                outcomes = self._one(key, rows, write)
            except Overflow:
                if not write.quarantine:
                    raise
                outcomes = ["quarantined"] * len(rows)
                overflowed.add(key)
            for outcome in outcomes:
                counts[outcome] += 1
        for key in sorted((write.rest or frozenset()) - (set(by_key) - overflowed)):
            if key in self.live:
                self.feed.append((Op.RETRACT, self.live.pop(key)))
                counts["deleted"] += 1
        return counts

    @property
    def _folds(self) -> bool:
        return self.dataset.merge_mode in (MergeMode.PARTIAL, MergeMode.AGGREGATE)

    @property
    def ordered(self) -> bool:
        modes = (MergeMode.PARTIAL, MergeMode.AGGREGATE, MergeMode.EVENT_TIME)
        return self.dataset.ordering_field is not None and self.dataset.merge_mode in modes

    def _order(self, row: Row) -> tuple[int, Any]:
        value = row[self.dataset.ordering_field] if self.ordered and self.dataset.ordering_field else None
        return (0, 0) if value is None else (1, value)

    def _one(self, key: Key, rows: Sequence[RowChange], write: Write) -> list[str]:
        """The outcome of each of the rows of one key, which are applied one by one; the feed gets the difference."""
        before, tombstone = self.live.get(key), self.tombstones.get(key)
        refused = before is not None and write.operation.refuses_live_keys
        if tombstone is not None and write.at > tombstone.until:
            tombstone = None
        state = KeyState(row=None if refused else before, tombstone=tombstone)
        for place, (op, row) in enumerate(rows):
            self._step(state, place, op, row, write)
        outcomes = ["unchanged"] * len(rows)
        if refused:
            assert write.drop or write.quarantine
            assert state.cause is not None
            places = range(len(rows)) if self._folds else [state.cause]
            for place in places if write.quarantine else ():
                outcomes[place] = "quarantined"
            return outcomes
        after = before if state.cause is None else state.row
        changed = (before is None) != (after is None)
        if before is not None and after is not None:
            changed = exact(before) != exact(after)
        if changed and after is not None:
            self._fitting(after)
        if state.cause is not None:
            self._put(key, before if after is not None and not changed else after, state.tombstone)
        for place, by_tombstone in state.late.items():
            if by_tombstone or not (self._folds and changed):
                outcomes[place] = "late"
        if changed:
            assert state.cause is not None
            outcomes[state.cause] = self._emit(before, after)
        return outcomes

    def _put(self, key: Key, row: Row | None, tombstone: Tombstone | None) -> None:
        self.live.pop(key, None)
        self.tombstones.pop(key, None)
        if row is not None:
            self.live[key] = row
        elif tombstone is not None:
            self.tombstones[key] = tombstone

    def _emit(self, before: Row | None, after: Row | None) -> str:
        if before is None and after is not None:
            self.feed.append((Op.APPEND, after))
            return "inserted"
        if before is not None and after is None:
            self.feed.append((Op.RETRACT, before))
            return "deleted"
        assert before is not None
        assert after is not None
        self.feed += [(Op.CORRECT_FROM, before), (Op.CORRECT_TO, after)]
        return "updated"

    def _step(self, state: KeyState, place: int, op: int, row: Row, write: Write) -> None:
        """Applies one row to its key."""
        order = self._order(row)
        if op == Op.CORRECT_FROM and not write.by_arrival:
            self._correct(state, place)
            return
        if _deletes(op):
            self._delete(state, place, order, write)
            return
        replaces = write.by_arrival or (write.operation.replaces and place == 0)
        if not replaces and state.tombstone is not None and order < state.tombstone.order:
            state.late[place] = True
            return
        whole = row if write.by_arrival or write.operation.replaces else self._state(row)
        if replaces or state.row is None:
            state.row, state.tombstone, state.cause = whole, None, place
            return
        newer = order >= self._order(state.row)
        if self.ordered and not newer:
            state.late[place] = False
        match self.dataset.merge_mode:
            case MergeMode.FIRST:
                return
            case MergeMode.EVENT_TIME:
                if not newer:
                    return
                state.row = whole
            case MergeMode.COMMIT_TIME:
                state.row = whole
            case _:
                state.row = self._combined(state.row, whole, newer=newer)
        state.cause = place

    def _correct(self, state: KeyState, place: int) -> None:
        """Takes the old row of a correction out where rows have no order; elsewhere its new row is compared."""
        if not self.ordered:
            state.row, state.tombstone, state.cause = None, None, place

    def _delete(self, state: KeyState, place: int, order: tuple[int, Any], write: Write) -> None:
        keep = write.keep if self.ordered else 0
        if order == (0, 0) or write.by_arrival:
            if keep and not write.by_arrival:
                if state.row is None:
                    return
                order = self._order(state.row)
        else:
            stands = state.row is not None and self._order(state.row) > order
            if stands or (state.tombstone is not None and state.tombstone.order > order):
                state.late[place] = not stands
                return
        state.row, state.cause = None, place
        state.tombstone = None
        if keep:
            state.tombstone = Tombstone(order=order, until=write.at + keep, keep=keep)

    def _state(self, row: Row) -> Row:
        """A row that comes in, as a table of nothing else would hold it."""
        state = dict(row)
        for name, rule in self.dataset.aggregates.items():
            if rule is Aggregate.COUNT:
                state[name] = int(row[name] is not None)
        for group in self.dataset.sequence_groups:
            if row[group.ordering_field] is None:
                state.update(dict.fromkeys(group.fields))
        return state

    def _combined(self, one: Row, other: Row, *, newer: bool) -> Row:
        combined = {}
        fixed = {*self.dataset.record_key, *partition_sources(self.dataset)}
        for name in one:
            rule = self.dataset.aggregates.get(name, Aggregate.LAST_NON_NULL)
            combined[name] = one[name] if name in fixed else _aggregated(rule, one[name], other[name], newer)
        for group in self.dataset.sequence_groups:
            mine, theirs = one[group.ordering_field], other[group.ordering_field]
            source = other if theirs is not None and (mine is None or theirs >= mine) else one
            for name in (group.ordering_field, *group.fields):
                combined[name] = source[name]
        return combined

    def _fitting(self, row: Row) -> Row:
        for name, rule in self.dataset.aggregates.items():
            if rule in (Aggregate.SUM, Aggregate.COUNT) and row[name] is not None:
                try:
                    pa.scalar(row[name], self.dataset.schema.to_arrow().field(name).type)
                except (pa.ArrowInvalid, OverflowError) as error:
                    raise Overflow(name) from error
        return row


def _deletes(op: int) -> bool:
    return op in (Op.RETRACT, Op.CORRECT_FROM)


def _aggregated(rule: Aggregate, one: Any, other: Any, newer: bool) -> Any:
    match rule:
        case Aggregate.FIRST:
            return one
        case Aggregate.LAST:
            return other if newer else one
    if one is None or other is None:
        return other if one is None else one
    match rule:
        case Aggregate.LAST_NON_NULL:
            return other if newer else one
        case Aggregate.SUM | Aggregate.COUNT | Aggregate.COLLECT:
            return one + other
        case Aggregate.MIN:
            return min(one, other)
        case Aggregate.MAX:
            return max(one, other)
        case Aggregate.BOOL_AND:
            return one and other
        case Aggregate.BOOL_OR:
            return one or other


def exact(row: Row) -> str:
    """Equal for rows that are equal bit for bit, whatever the order of the entries of `tags`.

    Python's own == takes 0.0 for -0.0 and 1 for True.
    """
    return repr({name: _exact(name, value) for name, value in row.items()})


def _exact(name: str, value: Any) -> Any:
    if name == "tags" and value:
        return sorted(value, key=repr)
    return str(value) if isinstance(value, Decimal) else value


@dataclass(kw_only=True)
class Heap:
    """A table without a key: rows as often as they were added."""

    rows: list[Row]

    def changes_from(self, before: Sequence[Row]) -> list[tuple[int, str]]:
        """What brings those rows to these, sorted; a row that is in both stays, as often as it is in both."""
        left, changes = [exact(row) for row in before], []
        for row in self.rows:
            if exact(row) in left:
                left.remove(exact(row))
            else:
                changes.append((int(Op.APPEND), exact(row)))
        return sorted(changes + [(int(Op.RETRACT), row) for row in left])
