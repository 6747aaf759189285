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
ALWAYS = (2, 0)


class Overflow(Exception):
    """A sum does not fit its field."""


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write: its rows, each with what it does to its key. `drop`, `quarantine`: of live keys, by an insert.

    `rest`: keys of live rows to take out unless the rows name them.
    """

    operation: Operation
    rows: Sequence[RowChange]
    drop: bool = False
    quarantine: bool = False
    rest: frozenset[Key] | None = None


@dataclass(frozen=True, kw_only=True)
class KeyMutation:
    """What a write does to one key: `reset` is the order up to which the live row is deleted, if there is one."""

    reset: tuple[int, Any] | None
    order: tuple[int, Any]
    row: Row | None
    rows: int


@dataclass(kw_only=True)
class Table:
    """A keyed table with the feed of everything that happened to it."""

    dataset: DatasetDefinition
    live: dict[Key, Row] = field(default_factory=dict)
    feed: list[tuple[int, Row]] = field(default_factory=list)

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

    def refuses(self, write: Write) -> bool:
        """Whether the write fails: an insert that would find a live key, or a sum out of range that fails it."""
        forgiving = write.drop or write.quarantine
        strict = write.operation.refuses_live_keys and not forgiving
        if strict and any(self.key(row) in self.live for _, row in write.rows):
            return True
        try:
            Table(dataset=self.dataset, live=dict(self.live)).apply_write(write)
        except Overflow:
            return True
        return False

    def apply_write(self, write: Write) -> dict[str, int]:
        """Applies one write and returns its counts. Raises Overflow, unless the write quarantines such rows."""
        counts = dict.fromkeys(("inserted", "updated", "deleted", "unchanged", "quarantined"), 0)
        by_key: dict[Key, list[RowChange]] = {}
        overflowed: set[Key] = set()
        for change in write.rows:
            by_key.setdefault(self.key(change[1]), []).append(change)
        for key, rows in by_key.items():
            mutation = self._mutation(rows, write.operation)
            try:
                outcome = self._one(key, mutation, write)
            except Overflow:
                if not write.quarantine:
                    raise
                counts["quarantined"] += len(rows)
                overflowed.add(key)
                continue
            counted = mutation.rows if outcome == "quarantined" else 1
            counts[outcome] += counted
            counts["unchanged"] += len(rows) - counted
        for key in sorted((write.rest or frozenset()) - (set(by_key) - overflowed)):
            if key in self.live:
                self.feed.append((Op.RETRACT, self.live.pop(key)))
                counts["deleted"] += 1
        return counts

    @property
    def _folds(self) -> bool:
        return self.dataset.merge_mode in (MergeMode.PARTIAL, MergeMode.AGGREGATE)

    def _order(self, row: Row) -> tuple[int, Any]:
        ordered = self._folds or self.dataset.merge_mode is MergeMode.EVENT_TIME
        value = row[self.dataset.ordering_field] if ordered and self.dataset.ordering_field else None
        return (0, 0) if value is None else (1, value)

    def _mutation(self, rows: Sequence[RowChange], operation: Operation) -> KeyMutation:
        """The rows of one key in one write, as one."""
        following = [*rows[1:], None]
        left = [
            change
            for change, after in zip(rows, following, strict=True)
            if not (change[0] == Op.CORRECT_FROM and after is not None and after[0] == Op.CORRECT_TO)
        ]
        reset = None
        for at, (op, row) in enumerate(left[:]):
            if _deletes(op) and self._order(row) == (0, 0):
                reset, start = ALWAYS, at + 1
        if reset is not None:
            left = left[start:]
        left.sort(key=lambda change: self._order(change[1]))
        start = 0
        for at, (op, row) in enumerate(left):
            if _deletes(op):
                reset, start = max(reset or (0, 0), self._order(row)), at + 1
        puts = [row for _, row in left[start:]]
        if not puts:
            return KeyMutation(reset=reset, order=(0, 0), row=None, rows=1)
        if self.dataset.merge_mode is MergeMode.FIRST:
            return KeyMutation(reset=reset, order=(0, 0), row=puts[0], rows=1)
        if not self._folds:
            return KeyMutation(reset=reset, order=self._order(puts[-1]), row=puts[-1], rows=1)
        states = [row if operation.replaces else self._state(row) for row in puts]
        state = states[0]
        for other in states[1:]:
            state = self._combined(state, other, newer=True)
        return KeyMutation(reset=reset, order=self._order(puts[-1]), row=state, rows=len(puts))

    def _one(self, key: Key, mutation: KeyMutation, write: Write) -> str:
        before = self.live.get(key)
        resets = before is not None and mutation.reset is not None and mutation.reset >= self._order(before)
        if mutation.row is None:
            if before is None or not resets:
                return "unchanged"
            del self.live[key]
            self.feed.append((Op.RETRACT, before))
            return "deleted"
        if before is None:
            self.live[key] = self._fitting(mutation.row)
            self.feed.append((Op.APPEND, mutation.row))
            return "inserted"
        if write.operation.refuses_live_keys:
            assert write.drop or write.quarantine
            return "unchanged" if write.drop else "quarantined"
        after = mutation.row if resets or write.operation.replaces else self._merged(before, mutation)
        if exact(before) == exact(after):
            return "unchanged"
        self.live[key] = self._fitting(after)
        self.feed += [(Op.CORRECT_FROM, before), (Op.CORRECT_TO, after)]
        return "updated"

    def _merged(self, before: Row, mutation: KeyMutation) -> Row:
        assert mutation.row is not None
        newer = mutation.order >= self._order(before)
        match self.dataset.merge_mode:
            case MergeMode.EVENT_TIME:
                return mutation.row if newer else before
            case MergeMode.COMMIT_TIME:
                return mutation.row
            case MergeMode.FIRST:
                return before
        return self._combined(before, mutation.row, newer=newer)

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
