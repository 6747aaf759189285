"""The strict fold: every kind of difference is found, and the first of them is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.changelog.fold_check import BEFORE, check_fold
from app.kernel.changelog.verification import Difference, DifferenceKind, FoldVerdict
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import OFFSET_COLUMN
from tests.support.examples import a_third_of

A, R, CF, CT = Op.APPEND, Op.RETRACT, Op.CORRECT_FROM, Op.CORRECT_TO
Change = tuple[int, Op, Any]


def dataset(*key: str) -> DatasetDefinition:
    fields = [
        CreateField(name="k", type="int64"),
        CreateField(name="v", type="double"),
        CreateField(name="tags", type="list<struct<a: string, m: map<string, int32>>>"),
    ]
    return define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=fields), record_key=list(key)))


KEYED, HEAP = dataset("k"), dataset()


def row(key: int, value: float | None = 0.0, text: str | None = "x") -> dict[str, Any]:
    return {"k": key, "v": value, "tags": None if text is None else [{"a": text, "m": [("n", 1)]}, None]}


def check(definition: DatasetDefinition, changes: Sequence[Change], table: Sequence[Any]) -> FoldVerdict:
    fields = [field.with_nullable(True) for field in definition.schema.to_arrow()]
    emitted = pa.schema([OP_FIELD, pa.field(OFFSET_COLUMN, pa.int64()), *fields])
    rows = [{OP_COLUMN: int(op), OFFSET_COLUMN: offset, **values} for offset, op, values in changes]
    return check_fold(
        definition,
        pa.Table.from_pylist(rows, schema=emitted),
        pa.Table.from_pylist(list(table), schema=pa.schema(fields)),
    )


def first(verdict: FoldVerdict) -> Difference:
    assert verdict.first is not None
    return verdict.first


FEED: list[Change] = [
    (0, A, row(1)),
    (1, A, row(2, None)),
    (2, CF, row(1)),
    (3, CT, row(1, 2.5, None)),
    (4, R, row(2, None)),
    (7, A, row(2, 3.0)),
    (8, A, row(3)),
    (9, R, row(3)),
]
TABLE = [row(2, 3.0), row(1, 2.5, None)]


def test_feed_that_folds_to_the_table_equals_it() -> None:
    assert check(KEYED, FEED, TABLE) == FoldVerdict(rows=2, changes=8)
    assert check(KEYED, [], []) == FoldVerdict()


def test_starting_rows_do_not_count_as_changes() -> None:
    changes = [(BEFORE, A, row(1)), (BEFORE, A, row(2)), (5, R, row(1))]
    assert check(KEYED, changes, [row(2)]) == FoldVerdict(rows=1, changes=1)


def test_row_absent_from_the_table_is_missing() -> None:
    found = check(KEYED, FEED, TABLE[1:])
    assert found.differences == 1
    assert first(found) == Difference(
        kind=DifferenceKind.MISSING,
        key={"k": 2},
        offset=7,
        op="+A",
        in_feed={"k": 2, "v": 3.0, "tags": [{"a": "x", "m": {"n": 1}}, None]},
        in_table=None,
    )


def test_row_absent_from_the_feed_is_unexpected() -> None:
    retracted = first(check(KEYED, FEED, [*TABLE, row(3)]))
    assert (retracted.kind, retracted.key, retracted.offset, retracted.op) == (
        DifferenceKind.UNEXPECTED,
        {"k": 3},
        9,
        "-R",
    )
    assert retracted.in_feed is None
    never_emitted = first(check(KEYED, FEED, [*TABLE, row(4)]))
    assert (never_emitted.kind, never_emitted.offset, never_emitted.op) == (
        DifferenceKind.UNEXPECTED,
        None,
        None,
    )


def test_duplicate_key_of_the_table_is_unexpected_once() -> None:
    found = check(KEYED, FEED, [*TABLE, row(1, 2.5, None)])
    assert (found.differences, first(found).kind, first(found).offset) == (1, DifferenceKind.UNEXPECTED, 3)


@pytest.mark.parametrize(
    "other", [row(1, 2.25, None), row(1, None, None), row(1, 2.5, "x")], ids=["value", "null", "nested"]
)
def test_row_with_other_values_is_different(other: dict[str, Any]) -> None:
    found = first(check(KEYED, FEED, [TABLE[0], other]))
    assert (found.kind, found.offset, found.op) == (DifferenceKind.DIFFERENT, 3, "+C")
    assert found.in_feed is not None
    assert found.in_table is not None
    assert found.in_feed["v"] == 2.5
    assert found.in_table["v"] == other["v"]


@pytest.mark.parametrize(
    ("changes", "offset"),
    [
        ([(0, A, row(1)), (1, A, row(1))], 1),
        ([(0, R, row(1)), (1, A, row(1))], 0),
        ([(0, A, row(1)), (1, R, row(1, 0.5)), (2, A, row(1))], 1),
        ([(0, A, row(1)), (1, CF, row(1, 0.5)), (2, CT, row(1))], 1),
        ([(0, CT, row(1))], 0),
        ([(0, A, row(1)), (1, R, row(1)), (2, CT, row(1))], 2),
        ([(0, A, row(1)), (1, CF, row(1)), (2, A, row(1))], 1),
        ([(0, A, row(1)), (1, CF, row(1)), (3, CT, row(1))], 1),
        ([(BEFORE, A, row(1)), (6, A, row(1))], 6),
    ],
    ids=[
        "an append of a live key",
        "a retraction of no row",
        "a retraction of other values",
        "a correction of other values",
        "a +C of no row",
        "a +C without its -C",
        "a -C without its +C",
        "a +C that does not follow its -C",
        "an append of a key that was there before",
    ],
)
def test_change_that_contradicts_earlier_changes_is_illegal(changes: list[Change], offset: int) -> None:
    found = first(check(KEYED, changes, [row(1)]))
    assert (found.kind, found.offset) == (DifferenceKind.ILLEGAL_CHANGE, offset)


def test_first_difference_has_the_lowest_offset() -> None:
    changes = [(3, A, row(1)), (4, A, row(2)), (5, A, row(3)), (6, A, row(4))]
    table = [row(2), row(3, 9.0), row(5)]
    found = check(KEYED, changes, table)
    assert (found.differences, first(found).key, first(found).kind) == (4, {"k": 1}, DifferenceKind.MISSING)
    assert first(check(KEYED, changes, [row(1), *table])).key == {"k": 3}
    assert first(check(KEYED, changes[:2], [row(1), *table[:1], row(5)])).key == {"k": 5}


def test_illegal_change_precedes_differences_of_the_table() -> None:
    changes = [(3, A, row(1)), (4, A, row(2)), (5, A, row(2))]
    assert first(check(KEYED, changes, [row(2)])).offset == 5


def test_rows_without_a_key_are_compared_by_count() -> None:
    changes = [(0, A, row(1)), (1, A, row(1)), (2, R, row(1)), (3, A, row(2))]
    assert check(HEAP, changes, [row(1), row(2)]) == FoldVerdict(rows=2, changes=4)
    lacking = check(HEAP, changes, [row(2)])
    assert (lacking.differences, first(lacking).kind) == (1, DifferenceKind.MISSING)
    more = check(HEAP, changes, [row(1), row(1), row(1), row(2)])
    assert (more.differences, first(more).kind, first(more).key) == (2, DifferenceKind.UNEXPECTED, {})


@pytest.mark.parametrize("op", [R, CF, CT])
def test_retraction_of_an_absent_row_without_a_key_is_illegal(op: Op) -> None:
    changes = [(0, A, row(1)), (1, op, row(2)), (2, A, row(2))]
    found = check(HEAP, changes, [row(1), row(2)])
    assert (found.differences, first(found).kind, first(found).offset) == (
        1,
        DifferenceKind.ILLEGAL_CHANGE,
        1,
    )


def _values(numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [row(number % 3, float(number % 2), None) for number in numbers]


@given(
    changes=st.lists(st.tuples(st.sampled_from(list(Op)), st.integers(0, 5), st.integers(1, 2)), max_size=14),
    table=st.lists(st.integers(0, 5), max_size=4),
)
@settings(max_examples=a_third_of(80), deadline=None)
@pytest.mark.parametrize("definition", [KEYED, HEAP], ids=["keyed", "without a key"])
def test_differences_equal_those_of_a_row_by_row_walk(
    definition: DatasetDefinition, changes: list[tuple[Op, int, int]], table: list[int]
) -> None:
    emitted: list[Change] = []
    offset = 0
    for op, number, step in changes:
        emitted.append((offset, op, _values([number])[0]))
        offset += step
    found = check(definition, emitted, _values(table))
    walk = _walk_keys if definition.keyed else _walk_bags
    illegal, differences = walk(emitted, _values(table))
    assert found.differences == len(illegal) + differences
    if illegal:
        assert (first(found).kind, first(found).offset) == (DifferenceKind.ILLEGAL_CHANGE, illegal[0])
    assert (found.first is None) == (not illegal and not differences)


def _walk_keys(changes: list[Change], table: list[dict[str, Any]]) -> tuple[list[int], int]:
    """What a reader finds who takes changes one by one."""
    live: dict[int, Any] = {}
    before: dict[int, tuple[int, Op]] = {}
    of_key: dict[int, list[tuple[int, Op]]] = {}
    for offset, op, values in changes:
        of_key.setdefault(values["k"], []).append((offset, op))
    illegal = []
    for offset, op, values in changes:
        key = values["k"]
        rest = [each for each in of_key[key] if each[0] > offset]
        if op is A:
            legal = key not in live
        elif op is CT:
            legal = before.get(key) == (offset - 1, CF)
        else:
            legal = live.get(key) == values and (op is R or rest[:1] == [(offset + 1, CT)])
        if not legal:
            illegal.append(offset)
        live.pop(key, None)
        if op in (A, CT):
            live[key] = values
        before[key] = (offset, op)
    table_rows: dict[int, list[Any]] = {}
    for values in table:
        table_rows.setdefault(values["k"], []).append(values)
    differences = sum(len(rows) - 1 for rows in table_rows.values())
    for key in {*live, *table_rows}:
        differences += live.get(key) != table_rows.get(key, [None])[0]
    return illegal, differences


def _walk_bags(changes: list[Change], table: list[dict[str, Any]]) -> tuple[list[int], int]:
    live: Counter[str] = Counter()
    illegal = []
    for offset, op, values in changes:
        if op is A:
            live[repr(values)] += 1
        elif op is R and live[repr(values)]:
            live[repr(values)] -= 1
        else:
            illegal.append(offset)
    table_rows = Counter(map(repr, table))
    return illegal, (live - table_rows).total() + (table_rows - live).total()
