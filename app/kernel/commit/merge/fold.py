"""Folding: combines two rows of one key field by field, in the merge modes `partial` and `aggregate`.

Incoming rows are first converted to states (`Fold.states`): a counted field becomes 0 or 1, and the fields of a
sequence group whose ordering value is null become null. Then `Fold.combine` folds two states into one. It is
associative over states in order, so rows of one write are folded in pairs, and pairs in pairs.

Sums are computed in types that no number of rows overflows; `overflows` finds those that do not fit their field.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal as DecimalValue
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.commit.merge.values import concat_lists
from app.kernel.format.dataset import Aggregate, DatasetDefinition, MergeMode, SequenceGroup
from app.kernel.format.partition.fields import partition_sources

FOLDING: Final = (MergeMode.PARTIAL, MergeMode.AGGREGATE)
_SUMMED: Final = (Aggregate.SUM, Aggregate.COUNT)
# The additional digits of sums of up to 10^20 values.
_CARRY_DIGITS: Final = 20
# One digit is left for the addition itself: Arrow's result type is one digit wider.
_INT64_SUM: Final = pa.decimal128(37, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Fold:
    """The rules of one dataset. `rules`: by field, for the fields outside of sequence groups."""

    schema: pa.Schema
    rules: dict[str, Aggregate]
    groups: tuple[SequenceGroup, ...]

    @classmethod
    def of(cls, dataset: DatasetDefinition) -> Fold | None:
        """The fold of a dataset; None if its rows replace each other as a whole."""
        if not dataset.keyed or dataset.merge_mode not in FOLDING:
            return None
        # A row stays in its place: the key and the partition fields are those of the live row.
        place_fields = {*dataset.record_key, *partition_sources(dataset)}
        group_fields = {
            name for group in dataset.sequence_groups for name in (group.ordering_field, *group.fields)
        }
        rules = {
            name: Aggregate.FIRST
            if name in place_fields
            else dataset.aggregates.get(name, Aggregate.LAST_NON_NULL)
            for name in dataset.schema.names()
            if name not in group_fields
        }
        return cls(schema=dataset.schema.to_arrow(), rules=rules, groups=dataset.sequence_groups)

    def widened(self) -> pa.Schema:
        """The dataset's columns, all nullable. The columns of sums have types that hold every sum."""
        fields = []
        for field in self.schema:
            kind = _wide(field.type) if self.rules.get(field.name) in _SUMMED else field.type
            fields.append(field.with_type(kind).with_nullable(True))
        return pa.schema(fields)

    def states(self, rows: pa.Table, raw: np.ndarray) -> pa.Table:
        """The rows as states. Rows that are not `raw` (bool) are states already."""
        is_raw = pa.array(raw)
        for name, rule in self.rules.items():
            if rule is Aggregate.COUNT:
                column = rows.column(name)
                counts = pc.cast(pc.cast(column.is_valid(), pa.int64()), column.type)
                rows = _with_column(rows, name, pc.if_else(is_raw, counts, column))
        for group in self.groups:
            lacks_order = pc.and_(is_raw, rows.column(group.ordering_field).is_null())
            for name in group.fields:
                column = rows.column(name)
                null = pa.scalar(None, column.type)
                rows = _with_column(rows, name, pc.if_else(lacks_order, null, column))
        return rows

    def combine(self, one: pa.Table, other: pa.Table, newer: np.ndarray) -> pa.Table:
        """The rows of `one` with those of `other` folded into them.

        `newer` (bool): where the row of `other` is not older than its counterpart.
        """
        later = pa.array(newer)
        columns = {
            name: _combined(rule, one.column(name), other.column(name), later, all_later=bool(newer.all()))
            for name, rule in self.rules.items()
        }
        for group in self.groups:
            from_other = _takes_over(one.column(group.ordering_field), other.column(group.ordering_field))
            for name in (group.ordering_field, *group.fields):
                columns[name] = pc.if_else(from_other, other.column(name), one.column(name))
        return pa.table([columns[name] for name in one.column_names], schema=one.schema)

    def combine_in_order(self, rows: pa.Table, segments: np.ndarray, late: np.ndarray) -> pa.Table:
        """One row per segment. `segments` (int64, ascending) numbers the segment of each row; its rows are in order of
        arrival. `late` (bool): the rows that are older than one before them, which is never the first.

        A field that newer rows replace takes their last value, and where they have none the first of the late rows.
        """
        combined = self._in_order(rows, segments)
        if not late.any():
            return combined
        newer = np.flatnonzero(~late)
        latest = self._in_order(_take(rows, newer), segments[newer])
        for name, rule in self.rules.items():
            if rule is Aggregate.LAST:
                combined = _with_column(combined, name, latest.column(name))
            elif rule is Aggregate.LAST_NON_NULL:
                filler = _first_values(rows.column(name), late, segments)
                combined = _with_column(combined, name, pc.coalesce(latest.column(name), filler))
        return combined

    def _in_order(self, rows: pa.Table, segments: np.ndarray) -> pa.Table:
        """One row per segment, where each row is newer than the one before it."""
        while True:
            starts = np.flatnonzero(np.diff(segments, prepend=-1))
            ranks = np.arange(len(segments)) - np.repeat(starts, np.diff(np.append(starts, len(segments))))
            second = ranks % 2 == 1
            if not second.any():
                return rows
            after = np.flatnonzero(second)
            pairs = self.combine(_take(rows, after - 1), _take(rows, after), np.ones(len(after), dtype=bool))
            alone = np.flatnonzero(~second & ~np.append(second[1:], False))
            order = np.argsort(np.concatenate([after - 1, alone]))
            rows = _take(pa.concat_tables([pairs, _take(rows, alone)]), order)
            segments = segments[~second]

    def overflows(self, rows: pa.Table) -> dict[str, np.ndarray]:
        """By field, the rows (bool) with a sum that is out of the range of the field; only fields with such rows."""
        fields = {}
        for name, rule in self.rules.items():
            if rule in _SUMMED:
                beyond = _out_of_range(rows.column(name), self.schema.field(name).type)
                if beyond.any():
                    fields[name] = beyond
        return fields


def _combined(
    rule: Aggregate, one: pa.ChunkedArray, other: pa.ChunkedArray, later: pa.Array, *, all_later: bool
) -> pa.ChunkedArray:
    match rule:
        case Aggregate.FIRST:
            return one
        case Aggregate.LAST:
            return other if all_later else pc.if_else(later, other, one)
        case Aggregate.LAST_NON_NULL:
            if all_later:
                return pc.coalesce(other, one)
            return pc.if_else(later, pc.coalesce(other, one), pc.coalesce(one, other))
        case Aggregate.SUM | Aggregate.COUNT:
            return pc.coalesce(pc.cast(pc.add(one, other), one.type), one, other)
        case Aggregate.MIN:
            return pc.min_element_wise(one, other)
        case Aggregate.MAX:
            return pc.max_element_wise(one, other)
        case Aggregate.BOOL_AND:
            return pc.coalesce(pc.and_(one, other), one, other)
        case Aggregate.BOOL_OR:
            return pc.coalesce(pc.or_(one, other), one, other)
        case Aggregate.COLLECT:
            return pc.coalesce(concat_lists(one, other), one, other)


def _takes_over(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether a sequence group with the ordering value in `other` replaces one with that in `one`, by row."""
    not_older = pc.fill_null(pc.greater_equal(other, one), False)
    return pc.or_(not_older, pc.and_(other.is_valid(), one.is_null()))


def _wide(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.decimal256(kind.precision + _CARRY_DIGITS, kind.scale)
    if pa.types.is_floating(kind):
        return pa.float64()
    return _INT64_SUM if kind == pa.int64() else pa.int64()


def _out_of_range(values: pa.ChunkedArray, kind: pa.DataType) -> np.ndarray:
    if pa.types.is_floating(kind):
        beyond = pc.greater(pc.abs(values), float(np.finfo(kind.to_pandas_dtype()).max))
    elif pa.types.is_decimal(kind):
        limit = DecimalValue(10) ** (kind.precision - kind.scale)
        beyond = pc.greater_equal(pc.abs(values), pa.scalar(limit, values.type))
    else:
        bounds = np.iinfo(kind.to_pandas_dtype())
        low, high = (
            pa.scalar(int(bound), pa.int64()).cast(values.type) for bound in (bounds.min, bounds.max)
        )
        beyond = pc.or_(pc.less(values, low), pc.greater(values, high))
    flags: np.ndarray = pc.fill_null(beyond, False).to_numpy()
    return flags


def _with_column(rows: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), values)


def _first_values(values: pa.ChunkedArray, rows: np.ndarray, segments: np.ndarray) -> pa.ChunkedArray:
    """By segment, the first value of these rows (bool) that is not null; null without one."""
    number = np.cumsum(np.diff(segments, prepend=-1) != 0) - 1
    places = np.flatnonzero(rows & values.is_valid().to_numpy())
    first = np.full(int(number[-1]) + 1, -1, dtype=np.int64)
    # Of several assignments to one element, the last one stays.
    first[number[places[::-1]]] = places[::-1]
    return values.take(pa.array(first, mask=first < 0))


def _take(rows: pa.Table, numbers: np.ndarray) -> pa.Table:
    return rows.take(pa.array(numbers))
