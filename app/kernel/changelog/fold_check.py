"""Strict folding: checks the fold of changes against a table, for all rows of some keys at once; pure functions.

The live row before a change follows from the preceding change of the same key alone. So a check of whether a change is
legal needs no sequential pass: changes are sorted by key, and each is compared with its neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.changelog.verification import Difference, DifferenceKind, FoldVerdict, earlier
from app.kernel.codecs.json.objects import to_objects
from app.kernel.commit.merge.numbered_rows import key_numbers
from app.kernel.commit.merge.values import row_codes
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.members import member_path
from app.kernel.format.rows.changelog import OP_COLUMN, SYMBOLS, Op
from app.kernel.format.rows.meta_columns import OFFSET_COLUMN

BEFORE: Final = -1
"""The offset of rows that the fold starts with."""

_NONE: Final = -1
_Numbers: TypeAlias = npt.NDArray[np.int64]
_Flags: TypeAlias = npt.NDArray[np.bool_]


def check_fold(dataset: DatasetDefinition, changes: pa.Table, table: pa.Table) -> FoldVerdict:
    """Whether the fold of the changes equals the table, and the first difference.

    `changes`: `_hw_op`, `_hw_offset` and the dataset's columns, by offset; rows that the fold starts with are appends
    at the offset BEFORE. `table`: the dataset's columns. Both have all rows of their keys.
    """
    names = dataset.schema.names()
    feed_rows = changes.select(names)
    rows = pa.concat_tables([feed_rows, table.select(names)])
    values = row_codes(rows)
    keys = key_numbers(dataset.record_key, rows) if dataset.keyed else values
    offsets: _Numbers = changes.column(OFFSET_COLUMN).to_numpy()
    sides = _Sides(
        ops=changes.column(OP_COLUMN).to_numpy().astype(np.int64),
        offsets=offsets,
        keys=keys[: feed_rows.num_rows],
        values=values[: feed_rows.num_rows],
        table_keys=keys[feed_rows.num_rows :],
        table_values=values[feed_rows.num_rows :],
    )
    differences = sides.of_keys() if dataset.keyed else sides.of_bags()
    return FoldVerdict(
        rows=table.num_rows,
        changes=int((offsets != BEFORE).sum()),
        differences=sum(each.count for each in differences),
        first=_first(differences, dataset, sides, feed_rows, table),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Differences:
    """Differences of one kind, as arrays of one length: the change and the row of the table of each, -1 if absent.

    `in_feed`: whether the fold has the row of the change. `count`: the number of rows.
    """

    kind: DifferenceKind
    change: _Numbers
    row: _Numbers
    in_feed: bool
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sides:
    """Changes and rows of the table as numbers: equal keys and values have equal numbers in both."""

    ops: _Numbers
    offsets: _Numbers
    keys: _Numbers
    values: _Numbers
    table_keys: _Numbers
    table_values: _Numbers

    @property
    def _key_count(self) -> int:
        return max(int(self.keys.max(initial=-1)), int(self.table_keys.max(initial=-1))) + 1

    def of_keys(self) -> list[_Differences]:
        """The differences with keys: at most one row is live per key."""
        order = np.argsort(self.keys, kind="stable")
        illegal = order[~self._legal_of_keys(order)]
        last, row = self._last_changes(order), self._first_rows()
        puts = np.isin(self.ops, (Op.APPEND, Op.CORRECT_TO))
        ends = last[last != _NONE]
        live_change = np.full(self._key_count, _NONE)
        live_change[self.keys[ends]] = np.where(puts[ends], ends, _NONE)
        missing = np.flatnonzero((live_change != _NONE) & (row == _NONE))
        surplus = np.flatnonzero((live_change == _NONE) & (row != _NONE))
        both = np.flatnonzero((live_change != _NONE) & (row != _NONE))
        different = both[self.values[live_change[both]] != self.table_values[row[both]]]
        duplicates = np.flatnonzero(row[self.table_keys] != np.arange(len(self.table_keys)))
        extra = np.concatenate([row[surplus], duplicates])
        return [
            _differences(DifferenceKind.ILLEGAL_CHANGE, illegal, row[self.keys[illegal]], in_feed=True),
            _differences(DifferenceKind.MISSING, live_change[missing], row[missing], in_feed=True),
            _differences(DifferenceKind.DIFFERENT, live_change[different], row[different], in_feed=True),
            _differences(DifferenceKind.UNEXPECTED, last[self.table_keys[extra]], extra, in_feed=False),
        ]

    def _legal_of_keys(self, order: _Numbers) -> _Flags:
        """Whether each change, in an order by key and then offset, fits those before it."""
        keys, ops, values, offsets = (
            each[order] for each in (self.keys, self.ops, self.values, self.offsets)
        )
        follows = ~_begins(keys)
        live = follows & np.isin(_shifted(ops), (Op.APPEND, Op.CORRECT_TO))
        same = live & (_shifted(values) == values)
        closes = (
            follows
            & (ops == Op.CORRECT_TO)
            & (_shifted(ops) == Op.CORRECT_FROM)
            & (_shifted(offsets) == offsets - 1)
        )
        opens = np.append(closes[1:], np.zeros(min(len(closes), 1), dtype=bool))
        legal: _Flags = np.select(
            [ops == Op.APPEND, ops == Op.CORRECT_TO, ops == Op.CORRECT_FROM],
            [~live, closes, same & opens],
            same,
        )
        return legal

    def of_bags(self) -> list[_Differences]:
        """The differences without keys: rows are compared as a multiset of values. There are no corrections without
        keys.
        """
        order = np.argsort(self.keys, kind="stable")
        keys, ops = self.keys[order], self.ops[order]
        steps = np.where(ops == Op.APPEND, 1, np.where(ops == Op.RETRACT, -1, 0))
        begins = _begins(keys)
        starts = np.flatnonzero(begins)
        lengths = np.diff(np.append(starts, len(keys)))
        sums = np.cumsum(steps)
        sums -= np.repeat(sums[starts] - steps[starts], lengths)
        # The lowest count below zero so far. Each multiset starts lower than all before it, so one pass suffices for
        # all.
        depth = np.repeat(np.arange(len(starts)), lengths) * (2 * len(keys) + 1)
        lowest = np.minimum(np.minimum.accumulate(sums - depth) + depth, 0)
        legal = (lowest == np.where(begins, 0, _shifted(lowest))) & (steps != 0)
        illegal = order[~legal]
        ends = starts + lengths - 1
        counts = np.zeros(self._key_count, dtype=np.int64)
        counts[keys[ends]] = sums[ends] - lowest[ends]
        surplus = counts - np.bincount(self.table_keys, minlength=self._key_count)
        missing, extra = np.flatnonzero(surplus > 0), np.flatnonzero(surplus < 0)
        last, row = self._last_changes(order), self._first_rows()
        none, lacking, more = np.full(len(missing), _NONE), surplus[missing].sum(), -surplus[extra].sum()
        return [
            _differences(DifferenceKind.ILLEGAL_CHANGE, illegal, row[self.keys[illegal]], in_feed=True),
            _differences(DifferenceKind.MISSING, last[missing], none, in_feed=True, count=int(lacking)),
            _differences(DifferenceKind.UNEXPECTED, last[extra], row[extra], in_feed=False, count=int(more)),
        ]

    def _last_changes(self, order: _Numbers) -> _Numbers:
        """The number of the last change by key; -1 without a change."""
        last = np.full(self._key_count, _NONE)
        last[self.keys[order]] = order
        return last

    def _first_rows(self) -> _Numbers:
        """The number of the table's first row by key; -1 without a row."""
        first = np.full(self._key_count, _NONE)
        first[self.table_keys[::-1]] = np.arange(len(self.table_keys))[::-1]
        return first


def _begins(keys: _Numbers) -> _Flags:
    """Whether each of the sorted keys is the first of its value."""
    begins: _Flags = np.diff(keys, prepend=-1) != 0
    return begins


def _differences(
    kind: DifferenceKind, change: _Numbers, row: _Numbers, *, in_feed: bool, count: int | None = None
) -> _Differences:
    return _Differences(
        kind=kind, change=change, row=row, in_feed=in_feed, count=len(change) if count is None else count
    )


def _shifted(values: Any) -> Any:
    """The value before each one; the first is its own."""
    return np.append(values[:1], values[:-1])


def _first(
    differences: list[_Differences],
    dataset: DatasetDefinition,
    sides: _Sides,
    feed_rows: pa.Table,
    table: pa.Table,
) -> Difference | None:
    first = None
    for each in differences:
        if len(each.change):
            offsets = np.append(sides.offsets, BEFORE)[each.change]
            at = int(np.argmin(np.where(offsets == BEFORE, np.iinfo(np.int64).max, offsets)))
            first = earlier(first, _difference(each, at, dataset, sides, feed_rows, table))
    return first


def _difference(
    differences: _Differences,
    at: int,
    dataset: DatasetDefinition,
    sides: _Sides,
    feed_rows: pa.Table,
    table: pa.Table,
) -> Difference:
    change, row = int(differences.change[at]), int(differences.row[at])
    has_change = change != _NONE and sides.offsets[change] != BEFORE
    in_feed = _row(feed_rows, change) if differences.in_feed else None
    in_table = _row(table.select(feed_rows.column_names), row)
    values = in_feed or in_table or {}
    return Difference(
        kind=differences.kind,
        key={name: _member(values, member_path(name, values)) for name in dataset.record_key},
        offset=int(sides.offsets[change]) if has_change else None,
        op=SYMBOLS[int(sides.ops[change])] if has_change else None,
        in_feed=in_feed,
        in_table=in_table,
    )


def _member(values: Any, path: Sequence[str]) -> Any:
    for name in path:
        values = values[name]
    return values


def _row(rows: pa.Table, number: int) -> dict[str, Any] | None:
    """The row as JSON values."""
    if number == _NONE:
        return None
    one = rows.slice(number, 1).combine_chunks()
    return {name: to_objects(pa.concat_arrays(one.column(name).chunks))[0] for name in one.column_names}
