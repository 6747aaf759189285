"""What a table must hold, and what its feed must deliver, after each step of a history: the pure model with a memory.

The rows are those of the reference merge. Beside them the model keeps what is delivered when: writes that wait for a
bucket, changes that wait for compaction, and for every live row the version and the change that gave it its values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.kernel.commit.write_options import OnError
from app.kernel.commit.write_rules import applies_by_arrival
from app.kernel.format.dataset import BucketMode, ChangelogProducer, DatasetDefinition
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, Op, fold
from tests.kernel.commit.reference import Key, Row, Table, exact
from tests.kernel.commit.reference import Write as PlainWrite
from tests.support.lake_table import Change, LakeTable, Outcome, Write

RowChange = tuple[int, Row]
Predicate = Callable[[Row], bool]
_TAKES_BACK = (Op.RETRACT, Op.CORRECT_FROM)


@dataclass(kw_only=True)
class Expected:
    """What one step is to do. `emitted`: changes with what they take back; `passed_on`: rows in order of arrival.
    `touched`: the keys whose rows it changes; `late`: those whose earlier changes it emits.
    """

    counts: list[RowCounts] | None = None
    fails: bool = False
    emitted: list[RowChange] = field(default_factory=list)
    passed_on: list[RowChange] = field(default_factory=list)
    touched: set[Key] = field(default_factory=set)
    late: set[Key] = field(default_factory=set)


@dataclass(kw_only=True)
class KeyedModel:
    """Of a dataset with a record key. `known`: version of each live row, and offset of the change that set it."""

    dataset: DatasetDefinition
    table: Table = field(init=False)
    waiting: list[PlainWrite] = field(default_factory=list)
    unemitted: list[RowChange] = field(default_factory=list)
    known: dict[Key, tuple[int, int | None]] = field(default_factory=dict)
    emitted_at: dict[Key, int | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.table = Table(dataset=self.dataset)

    def fork(self) -> KeyedModel:
        copy = KeyedModel(dataset=self.dataset)
        copy.table.live = dict(self.table.live)
        copy.waiting, copy.unemitted = list(self.waiting), list(self.unemitted)
        copy.known, copy.emitted_at = dict(self.known), dict(self.emitted_at)
        return copy

    @property
    def producer(self) -> ChangelogProducer:
        return self.dataset.changelog.producer

    @property
    def postpones(self) -> bool:
        return self.dataset.bucket.mode is BucketMode.POSTPONE and not self.dataset.bucket.fixed_now

    def expect(self, writes: Sequence[Write], removes: Predicate | None = None) -> Expected:
        """Plays a group of writes, or a compaction; `removes`: which rows a write with a scope takes out."""
        expected = Expected()
        if writes[0].operation is None:
            self._settle(expected, None, scoped=False)
            return expected
        if removes is not None:
            self._settle(expected, None if self._reaches_all(writes[0]) else removes, scoped=True)
        plain = [self._plain(write, removes) for write in writes]
        if self.postpones and removes is None:
            self.waiting += plain
            expected.counts = [_as_log(write) for write in plain]
            return expected
        start = self.table
        self.table = Table(dataset=self.dataset, live=dict(start.live))
        counts = []
        for write in plain:
            if self.table.refuses(write):
                self.table = start
                return Expected(fails=True)
            counts.append(RowCounts(**self.table.apply_write(write)))
        self._emit(expected, plain, scoped=removes is not None)
        checked = any(write.operation.refuses_live_keys for write in plain)
        merges_later = not self.dataset.looks_up and removes is None and not checked
        expected.counts = [_as_log(write) for write in plain] if merges_later else counts
        return expected

    def _plain(self, write: Write, removes: Predicate | None) -> PlainWrite:
        names = self.dataset.schema.names()
        full = [{name: values.get(name) for name in names} for values in write.rows]
        if write.operation is Operation.CHANGELOG:
            rows = [(values[OP_COLUMN], each) for values, each in zip(write.rows, full, strict=True)]
        else:
            rows = list(self.table.plain(write.operation, full).rows)
        rest = None
        if removes is not None:
            rest = frozenset(key for key, values in self.table.live.items() if removes(values))
        return PlainWrite(
            operation=write.operation,
            rows=rows,
            drop=write.options.drop_duplicates,
            quarantine=write.options.on_error is OnError.QUARANTINE,
            rest=rest,
            by_arrival=applies_by_arrival(write.operation, write.options),
        )

    def _reaches_all(self, write: Write) -> bool:
        """Whether every waiting write is brought in; partitions alone leave out the others' where keys stay in one."""
        return self.dataset.bucket.mode is BucketMode.KEY_DYNAMIC or not (
            write.operation is Operation.DELETE_PARTITION
            or (write.options.overwrite is not None and write.options.overwrite.scope.value == "partitions")
        )

    def _settle(self, expected: Expected, reached: Predicate | None, *, scoped: bool) -> None:
        """What waits in the reached partitions appears now."""
        waiting, self.waiting = self.waiting, []
        for write in waiting:
            mine = [row_change for row_change in write.rows if reached is None or reached(row_change[1])]
            left = [
                row_change for row_change in write.rows if reached is not None and not reached(row_change[1])
            ]
            if left:
                self.waiting.append(
                    PlainWrite(operation=write.operation, rows=left, by_arrival=write.by_arrival)
                )
            if mine:
                plain_write = PlainWrite(operation=write.operation, rows=mine, by_arrival=write.by_arrival)
                self.table.feed.clear()
                self.table.apply_write(plain_write)
                self._emit(expected, [plain_write], scoped=scoped, now=True)
        unemitted, self.unemitted = self.unemitted, []
        for change in unemitted:
            if reached is not None and not reached(change[1]):
                self.unemitted.append(change)
                continue
            expected.emitted.append(change)
            expected.late.add(self.table.key(change[1]))

    def _emit(
        self, expected: Expected, writes: Sequence[PlainWrite], *, scoped: bool, now: bool = False
    ) -> None:
        changes = list(self.table.feed)
        self.table.feed.clear()
        expected.touched |= {self.table.key(values) for _, values in changes}
        checked = any(write.operation.refuses_live_keys for write in writes)
        if self.producer is ChangelogProducer.NONE:
            return
        if self.producer is ChangelogProducer.INPUT and not scoped and not checked:
            expected.passed_on += [row_change for write in writes for row_change in write.rows]
        elif self.producer is ChangelogProducer.DEFERRED and not scoped and not now:
            self.unemitted += changes
        else:
            expected.emitted += changes

    def observe(self, table: LakeTable, before: int, expected: Expected) -> None:
        """Holds what the feed has behind version `before` to what it was to have."""
        changes = table.changes(after=before)
        shown = [(change.op, change.row) for change in changes]
        assert self._by_key(shown) == self._by_key(expected.emitted + expected.passed_on)
        for key in expected.touched:
            if key in self.table.live:
                self.known[key] = (table.version, None)
            else:
                self.known.pop(key, None)
        for key in expected.late - expected.touched:
            if key in self.table.live:
                self.known[key] = (self.known[key][0], None)
        for change in changes:
            self._observe(change, passed_on=not expected.emitted)
        if expected.passed_on:
            # A row that was given is delivered without a place in the feed that later changes could take back.
            for key in expected.touched:
                self.emitted_at.pop(key, None)

    def _observe(self, change: Change, *, passed_on: bool) -> None:
        key = self.table.key(change.row)
        if passed_on:
            assert change.corrects is None
        elif change.op in _TAKES_BACK:
            assert change.corrects == self.emitted_at.pop(key, None)
        else:
            assert change.corrects is None
            self.emitted_at[key] = change.offset
            if key in self.table.live:
                self.known[key] = (self.known[key][0], change.offset)

    def _by_key(self, changes: Sequence[RowChange]) -> dict[Key, list[tuple[int, str]]]:
        grouped: dict[Key, list[tuple[int, str]]] = {}
        for op, values in changes:
            grouped.setdefault(self.table.key(values), []).append((int(op), exact(values)))
        return grouped

    def check_rows(self, table: LakeTable) -> None:
        """The table holds the model's rows, and each knows the version and the change that it is from."""
        found = {}
        for values in table.rows(meta=True):
            past = (values.pop("_hw_version"), values.pop("_hw_offset"))
            key = self.table.key(values)
            assert key not in found, f"two rows of {key}"
            found[key] = (exact(values), past)
        assert {key: shown for key, (shown, _) in found.items()} == {
            key: exact(values) for key, values in self.table.live.items()
        }
        assert {key: past for key, (_, past) in found.items()} == self.known

    def check_changed_rows(self, table: LakeTable, begin: int) -> None:
        """The rows that changed after a version are those of the table that a later commit has set."""
        expected = [self.table.live[key] for key, (version, _) in self.known.items() if version > begin]
        assert Counter(map(exact, table.changed_rows(begin))) == Counter(map(exact, expected))

    def check_fold(self, table: LakeTable) -> None:
        """Folding the feed gives the table, wherever the feed has all changes."""
        if self.producer in (ChangelogProducer.FULL, ChangelogProducer.DEFERRED) and not self.unemitted:
            folded = fold([(change.op, change.row) for change in table.changes()], self.dataset.record_key)
            assert Counter(map(exact, folded)) == Counter(map(exact, self.table.live.values()))
        if self.producer is ChangelogProducer.NONE:
            assert not table.changes()


@dataclass(kw_only=True)
class HeapModel:
    """Of a dataset without a key: rows as often as they were added."""

    dataset: DatasetDefinition
    rows: list[Row] = field(default_factory=list)

    def fork(self) -> HeapModel:
        return HeapModel(dataset=self.dataset, rows=list(self.rows))

    def expect(self, writes: Sequence[Write], removes: Predicate | None = None) -> Expected:
        expected = Expected()
        if writes[0].operation is None:
            return expected
        expected.counts = []
        if writes[0].operation is Operation.CHANGELOG:
            [write] = writes
            return self._changed(expected, write)
        for write in writes:
            full = [{name: each.get(name) for name in self.dataset.schema.names()} for each in write.rows]
            rest = [values for values in self.rows if removes is not None and removes(values)]
            left = Counter(map(exact, rest))
            added = []
            for values in full:
                if left[exact(values)]:
                    left[exact(values)] -= 1
                else:
                    added.append(values)
            gone = []
            for values in rest:
                if left[exact(values)]:
                    left[exact(values)] -= 1
                    gone.append(values)
            for values in gone:
                self.rows.remove(values)
            self.rows += added
            expected.emitted += [(Op.RETRACT, each) for each in gone] + [(Op.APPEND, each) for each in added]
            counts = RowCounts(inserted=len(added), deleted=len(gone), unchanged=len(full) - len(added))
            expected.counts.append(counts)
        if self.dataset.changelog.producer is ChangelogProducer.NONE:
            expected.emitted.clear()
        return expected

    def _changed(self, expected: Expected, write: Write) -> Expected:
        """Plays changes one after another. What is added and taken out by the same write is not delivered."""
        rows, absent = list(self.rows), 0
        for change in write.rows:
            values = {name: change.get(name) for name in self.dataset.schema.names()}
            if change[OP_COLUMN] not in _TAKES_BACK:
                rows.append(values)
            elif (place := _place(rows, values)) is not None:
                del rows[place]
            else:
                absent += 1
        if absent and write.options.on_error is not OnError.QUARANTINE:
            return Expected(fails=True)
        before, after = (Counter(map(exact, each)) for each in (self.rows, rows))
        by_text = {exact(values): values for values in [*self.rows, *rows]}
        gone = [by_text[text] for text in (before - after).elements()]
        added = [by_text[text] for text in (after - before).elements()]
        unchanged = len(write.rows) - absent - len(gone) - len(added)
        expected.counts = [
            RowCounts(inserted=len(added), deleted=len(gone), unchanged=unchanged, quarantined=absent)
        ]
        if self.dataset.changelog.producer is not ChangelogProducer.NONE:
            expected.emitted = [(Op.RETRACT, each) for each in gone] + [(Op.APPEND, each) for each in added]
        self.rows = rows
        return expected

    def observe(self, table: LakeTable, before: int, expected: Expected) -> None:
        found = Counter((change.op, exact(change.row)) for change in table.changes(after=before))
        assert found == Counter((int(op), exact(values)) for op, values in expected.emitted)

    def check_rows(self, table: LakeTable) -> None:
        """The table holds the model's rows; each knows a change that set it and that nothing took back."""
        found = table.rows(meta=True)
        past = [(values.pop("_hw_version"), values.pop("_hw_offset"), exact(values)) for values in found]
        assert Counter(shown for _, _, shown in past) == Counter(map(exact, self.rows))
        if self.dataset.changelog.producer is ChangelogProducer.NONE:
            assert {offset for _, offset, _ in past} <= {None}
            assert all(1 <= version <= table.version for version, _, _ in past)
            return
        live: dict[int, tuple[int, str]] = {}
        for change in table.changes():
            if change.op in _TAKES_BACK:
                assert change.corrects is not None
                assert live.pop(change.corrects)[1] == exact(change.row)
            else:
                live[change.offset] = (change.version, exact(change.row))
        assert {offset: (version, shown) for version, offset, shown in past} == live

    def check_changed_rows(self, table: LakeTable, begin: int) -> None:
        """The rows that changed after a version are those that know a later one."""
        later = [values for values in table.rows(meta=True) if values["_hw_version"] > begin]
        names = self.dataset.schema.names()
        expected = [{name: values[name] for name in names} for values in later]
        assert Counter(map(exact, table.changed_rows(begin))) == Counter(map(exact, expected))

    def check_fold(self, table: LakeTable) -> None:
        folded = fold([(change.op, change.row) for change in table.changes()], [])
        expected = [] if self.dataset.changelog.producer is ChangelogProducer.NONE else self.rows
        assert Counter(map(exact, folded)) == Counter(map(exact, expected))


Model = KeyedModel | HeapModel


def model_of(dataset: DatasetDefinition) -> Model:
    return KeyedModel(dataset=dataset) if dataset.keyed else HeapModel(dataset=dataset)


def check_step(model: Model, table: LakeTable, before: int, expected: Expected, outcome: Outcome) -> None:
    """Holds a step of a table to what it was expected to do."""
    assert bool(outcome.conflicts) == expected.fails, outcome.conflicts
    assert table.version - before in (0, 1)
    if expected.fails:
        assert table.version == before
        return
    if expected.counts is not None:
        assert outcome.counts == expected.counts
    quarantined_rows = sum(counts.quarantined for counts in outcome.counts)
    assert sum(file.row_count for file in outcome.quarantined) == quarantined_rows
    assert not (expected.emitted or expected.passed_on) or table.version == before + 1
    model.observe(table, before, expected)
    model.check_rows(table)


def _place(rows: Sequence[Row], values: Row) -> int | None:
    """The place of the last row that equals these values."""
    places = [place for place, each in enumerate(rows) if exact(each) == exact(values)]
    return places[-1] if places else None


def _as_log(write: PlainWrite) -> RowCounts:
    """Where it was not checked whether keys are there: rows that are put, and rows that delete."""
    gone = sum(op in _TAKES_BACK for op, _ in write.rows)
    return RowCounts(updated=len(write.rows) - gone, deleted=gone)
