"""The columnar merge against the reference model, and its rules one by one."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.commit.commit_message import CommitMessage, failed_writes
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import Aggregate, DatasetDefinition, MergeMode
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from tests.kernel.commit import merging
from tests.kernel.commit.merging import GROUPED, ROWS, check, dataset, datasets, feed, row, writes
from tests.kernel.commit.reference import Overflow, Row, Table, Write, exact
from tests.support.examples import a_third_of
from tests.support.shares import share


def run(table: Table, parts: list[tuple[Operation, list[Row]]]) -> MergeResult:
    return merging.run(table, [table.plain(operation, rows) for operation, rows in parts])


def copy(table: Table) -> Table:
    return table.copy()


@share(2)
@settings(max_examples=a_third_of(200), deadline=None)
@given(
    dataset=datasets(),
    before=st.lists(ROWS, max_size=4),
    group=st.lists(writes(GROUPED), min_size=1, max_size=5),
)
def test_group_of_writes_merges_like_single_writes_in_order(
    dataset: DatasetDefinition, before: list[Row], group: list[Write]
) -> None:
    start = Table(dataset=dataset)
    start.apply(Operation.UPSERT, before)
    end = copy(start)
    # Writes that would find a live key fail, so what remains must merge without a conflict.
    accepted, counts = [], []
    for write in group:
        if not end.refuses(write):
            counts.append(end.apply_write(write))
            accepted.append(write)
    check(start, accepted, end, counts)


CUT = (Operation.UPSERT, Operation.DELETE, Operation.CHANGELOG)


@share(2)
@settings(max_examples=a_third_of(300), deadline=None)
@given(
    dataset=datasets(),
    before=st.lists(ROWS, max_size=3),
    write=writes(CUT),
    cuts=st.sets(st.integers(0, 5)),
)
def test_write_in_pieces_makes_the_same_table_and_tombstones(
    dataset: DatasetDefinition, before: list[Row], write: Write, cuts: set[int]
) -> None:
    start = Table(dataset=dataset)
    start.apply(Operation.UPSERT, before)
    whole, pieces = copy(start), copy(start)
    bounds = [0, *sorted(cuts), len(write.rows)]
    parts = [replace(write, rows=write.rows[first:end]) for first, end in pairwise(bounds)]
    counts = [pieces.apply_write(each) for each in parts]
    try:
        counts_of_all = whole.apply_write(write)
    except Overflow:
        return
    check(start, [write], whole, [counts_of_all])
    check(start, parts, pieces, counts)
    assert {key: exact(values) for key, values in whole.live.items()} == {
        key: exact(values) for key, values in pieces.live.items()
    }
    assert whole.tombstones == pieces.tombstones


REPLACING = (Operation.SNAPSHOT, Operation.OVERWRITE, Operation.DELETE)


@settings(max_examples=a_third_of(200), deadline=None)
@given(
    dataset=datasets(),
    before=st.lists(ROWS, max_size=6),
    write=writes(REPLACING, min_size=0),
    scope=st.sets(st.sampled_from(["a", "", "ü\u2028"])),
)
def test_live_rows_in_scope_and_absent_from_the_write_are_retracted(
    dataset: DatasetDefinition, before: list[Row], write: Write, scope: set[str]
) -> None:
    start = Table(dataset=dataset)
    start.apply(Operation.UPSERT, before)
    rest = frozenset(key for key, values in start.live.items() if values["k"] in scope)
    rows = [] if write.operation is Operation.DELETE else write.rows
    scoped = Write(operation=write.operation, rows=rows, rest=rest)
    end = copy(start)
    counts = end.apply_write(scoped)
    check(start, [scoped], end, [counts])


SUMS = dataset(merge_mode=MergeMode.AGGREGATE, aggregates={"size": Aggregate.SUM})


@settings(max_examples=a_third_of(150), deadline=None)
@given(
    before=st.lists(ROWS, max_size=4),
    group=st.lists(writes([*GROUPED, Operation.UPSERT]), min_size=1, max_size=5),
)
def test_overflowing_keys_are_quarantined_like_single_writes_in_order(
    before: list[Row], group: list[Write]
) -> None:
    start = Table(dataset=SUMS)
    start.apply_write(
        Write(operation=Operation.UPSERT, rows=[(Op.APPEND, each) for each in before], quarantine=True)
    )
    end = copy(start)
    accepted, counts = [], []
    for write in group:
        # A changelog is refused by datasets with sums.
        if write.operation is not Operation.CHANGELOG and not end.refuses(write):
            counts.append(end.apply_write(write))
            accepted.append(write)
    check(start, accepted, end, counts)


@settings(max_examples=a_third_of(100), deadline=None)
@given(before=st.lists(ROWS, max_size=4), write=writes(REPLACING, min_size=0))
def test_live_row_of_an_overflowing_key_is_retracted_with_the_table(before: list[Row], write: Write) -> None:
    start = Table(dataset=SUMS)
    start.apply_write(
        Write(operation=Operation.UPSERT, rows=[(Op.APPEND, each) for each in before], quarantine=True)
    )
    rows = [] if write.operation is Operation.DELETE else write.rows
    whole = Write(operation=write.operation, rows=rows, rest=frozenset(start.live), quarantine=True)
    end = copy(start)
    counts = end.apply_write(whole)
    check(start, [whole], end, [counts])


@share(2)
@settings(max_examples=a_third_of(200), deadline=None)
@given(
    definition=st.sampled_from([dataset(), SUMS]),
    before=st.lists(ROWS, max_size=4),
    group=st.lists(writes([Operation.INSERT, Operation.UPSERT, Operation.DELETE]), min_size=1, max_size=5),
)
def test_repeated_failure_of_certain_conflicts_equals_the_serial_order(
    definition: DatasetDefinition, before: list[Row], group: list[Write]
) -> None:
    table = Table(dataset=definition)
    before = list({values["k"]: values for values in before}.values())
    table.apply(Operation.UPSERT, before)
    serial = copy(table)
    expected = set()
    for at, write in enumerate(group):
        if serial.refuses(write):
            expected.add(at)
        else:
            serial.apply_write(write)
    remaining = dict(enumerate(group))
    failed: set[int] = set()
    while remaining:
        numbers = list(remaining)
        result = merging.run(table, list(remaining.values()))
        message = CommitMessage(file_group="g", conflicts=result.conflicts)
        certain = {numbers[at] for at in failed_writes([message])}
        if not certain:
            assert result.conflicts == ()
            break
        failed |= certain
        remaining = {at: each for at, each in remaining.items() if at not in certain}
    assert failed == expected


def test_overflowing_sum_within_an_insert_conflicts() -> None:
    table = Table(dataset=SUMS)
    rows = [row("new", size=-100), row("new", size=-100)]
    assert table.conflicts(Operation.INSERT, rows)
    result = run(table, [(Operation.INSERT, rows)])
    assert [(conflict.job, conflict.overflow_field) for conflict in result.conflicts] == [(0, "size")]


def test_sum_that_overflows_only_with_a_failed_write_is_not_certain() -> None:
    table = Table(dataset=SUMS)
    table.apply(Operation.UPSERT, [row("live")])
    first = (Operation.INSERT, [row("live"), row("new", size=100)])
    result = run(table, [first, (Operation.UPSERT, [row("new", size=100)])])
    assert [(conflict.job, conflict.overflow_field) for conflict in result.conflicts] == [
        (0, None),
        (1, "size"),
    ]
    message = CommitMessage(file_group="g", conflicts=result.conflicts)
    assert list(failed_writes([message])) == [0]


def test_zeros_of_different_signs_are_different_values() -> None:
    table = Table(dataset=dataset())
    table.apply(Operation.UPSERT, [row("a", ratio=0.0)])
    result = run(table, [(Operation.UPSERT, [row("a", ratio=-0.0)])])
    assert result.counts == {0: RowCounts(updated=1)}


def test_late_row_changes_nothing_and_emits_nothing() -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.UPSERT, [row("a", ts=4, price=None)])])
    assert result.stays.tolist() == [True]
    assert (result.rows.num_rows, result.changes.num_rows) == (0, 0)
    assert result.counts == {0: RowCounts(late=1)}


def test_later_arrival_wins_among_equal_ordering_values() -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.UPSERT, [row("a", ts=5, n=1), row("a", ts=5, n=2)])])
    assert [(op, values["n"]) for op, values in feed(result)] == [(Op.CORRECT_FROM, 0), (Op.CORRECT_TO, 2)]
    assert result.counts == {0: RowCounts(updated=1, unchanged=1)}


@pytest.mark.parametrize(
    ("ts", "deleted"),
    [(4, False), (5, True), (6, True), (None, True)],
    ids=["late", "equal", "newer", "without"],
)
def test_late_delete_loses_and_a_delete_without_an_ordering_value_wins(ts: int | None, deleted: bool) -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.DELETE, [row("a", ts=ts)])])
    assert result.stays.tolist() == [not deleted]
    assert result.counts == {0: RowCounts(deleted=int(deleted), late=int(not deleted))}


def test_delete_leaves_no_tombstone() -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.DELETE, [row("a", ts=None)]), (Operation.UPSERT, [row("a", ts=1)])])
    assert [op for op, _ in feed(result)] == [Op.RETRACT, Op.APPEND]


def test_retractions_carry_the_stored_values() -> None:
    table = Table(dataset=dataset())
    stored = row("a", ts=7, n=3, tags=[("x", [1, None])])
    table.apply(Operation.UPSERT, [stored])
    result = run(
        table, [(Operation.DELETE, [{"k": "a", "n": None, "ts": None, "price": None, "tags": None}])]
    )
    assert feed(result) == [(Op.RETRACT, stored)]


def test_insert_of_a_live_key_names_its_keys_and_the_blamed_writes() -> None:
    table = Table(dataset=dataset())
    table.apply(Operation.UPSERT, [row("a")])
    result = run(
        table, [(Operation.INSERT, [row("b")]), (Operation.BULK_INSERT, [row("a"), row("b"), row("c")])]
    )
    (conflict,) = result.conflicts
    assert (conflict.job, conflict.count, conflict.other_jobs) == (1, 2, (-1, 0))
    assert conflict.keys == ({"k": "a"}, {"k": "b"})


def test_unchanged_row_of_nested_values_is_recognised() -> None:
    table = Table(dataset=dataset())
    table.apply(Operation.UPSERT, [row("a", tags=[("x", [1, None])])])
    same = run(table, [(Operation.UPSERT, [row("a", tags=[("x", [1, None])])])])
    other = run(table, [(Operation.UPSERT, [row("a", tags=[("x", [1, 0])])])])
    assert (same.counts[0].unchanged, other.counts[0].updated) == (1, 1)
    assert np.array_equal(same.stays, [True])
