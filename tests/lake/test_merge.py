"""The columnar merge against the reference model, and its rules one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.lake.changelog import OP_COLUMN, OP_FIELD, Op, fold
from app.lake.commit_message import CommitMessage, failed_writes
from app.lake.dataset import DatasetDefinition
from app.lake.define import define_dataset
from app.lake.instant import RowCounts
from app.lake.merge import MergeResult, merge
from app.lake.meta_columns import CORRECTS_COLUMN, META_FIELDS, META_NAMES
from app.lake.new_dataset import NewDataset, NewField, NewSchema
from app.lake.operation import Operation
from app.lake.staging import JOB_COLUMN, ROW_COLUMN
from app.lake.write_plan import WriteIntent
from tests.lake.reference import Row, Table

FIELDS = [
    NewField(name="k", type="string"),
    NewField(name="n", type="int32"),
    NewField(name="ts", type="int64"),
    NewField(name="price", type="decimal(10, 2)"),
    NewField(name="tags", type="map<string, list<int32>>"),
]


def dataset(*, ordered: bool, two_keys: bool = False) -> DatasetDefinition:
    return define_dataset(
        NewDataset(
            name="t",
            schema=NewSchema(fields=FIELDS),
            record_key=["k", "n"] if two_keys else ["k"],
            ordering_field="ts" if ordered else None,
        )
    )


def run(table: Table, writes: list[tuple[Operation, list[Row]]]) -> MergeResult:
    """Merges the writes, as one group, into those live rows whose keys they touch."""
    schema = table.dataset.schema.to_arrow()
    relaxed = pa.schema([entry.with_nullable(True) for entry in schema])
    keys = {table.key(row) for _, rows in writes for row in rows}
    current = pa.Table.from_pylist([row for key, row in table.live.items() if key in keys], schema=schema)
    for meta in META_FIELDS:
        current = current.append_column(meta, pa.array(np.arange(current.num_rows)))
    rows = [row for _, part in writes for row in part]
    jobs = [number for number, (_, part) in enumerate(writes) for _ in part]
    positions = [at for _, part in writes for at in range(len(part))]
    incoming = pa.Table.from_pylist(rows, schema=relaxed)
    ops = [1 if operation is Operation.DELETE else 0 for operation, part in writes for _ in part]
    incoming = incoming.add_column(0, OP_FIELD, pa.array(ops, pa.uint8()))
    incoming = incoming.append_column(JOB_COLUMN, pa.array(jobs, pa.int32()))
    incoming = incoming.append_column(ROW_COLUMN, pa.array(positions, pa.int64()))
    return merge(
        table.dataset,
        current,
        incoming,
        {at: WriteIntent(operation=operation) for at, (operation, _) in enumerate(writes)},
    )


def row(k: str, ts: int | None = 1, n: int = 0, **values: Any) -> Row:
    return {"k": k, "n": n, "ts": ts, "price": None, "tags": None, **values}


def feed(result: MergeResult) -> list[tuple[int, Row]]:
    changes = result.changes.drop_columns([CORRECTS_COLUMN])
    return [(entry.pop(OP_COLUMN), entry) for entry in changes.to_pylist()]


def by_key(table: Table, changes: list[tuple[int, Row]]) -> dict[Any, list[tuple[int, Row]]]:
    """Changes per key, in order: between different keys the merge is free to choose the order."""
    grouped: dict[Any, list[tuple[int, Row]]] = {}
    for op, values in changes:
        grouped.setdefault(table.key(values), []).append((op, values))
    return grouped


KEYED = [Operation.INSERT, Operation.UPSERT, Operation.BULK_INSERT, Operation.DELETE]
rows = st.builds(
    row,
    k=st.sampled_from(["a", "b", "c", "", "ü\u2028"]),
    n=st.sampled_from([0, 1]),
    ts=st.one_of(st.none(), st.integers(0, 4)),
    price=st.one_of(st.none(), st.decimals("-1", "1", places=2)),
    tags=st.one_of(st.none(), st.just([]), st.just([("x", [1, None])])),
)
write = st.tuples(st.sampled_from(KEYED), st.lists(rows, min_size=1, max_size=6))


@settings(max_examples=400, deadline=None)
@given(
    ordered=st.booleans(),
    two_keys=st.booleans(),
    before=st.lists(rows, max_size=6),
    writes=st.lists(write, min_size=1, max_size=5),
)
def test_a_group_merges_like_its_writes_one_after_another(
    ordered: bool, two_keys: bool, before: list[Row], writes: list[tuple[Operation, list[Row]]]
) -> None:
    table = Table(dataset=dataset(ordered=ordered, two_keys=two_keys))
    table.apply(Operation.UPSERT, before)
    table.feed.clear()
    start = list(table.live.values())
    # Writes that would meet a live key fail, so what remains must merge without a conflict.
    accepted, counts = [], []
    for operation, part in writes:
        if not table.conflicts(operation, part):
            counts.append(table.apply(operation, part))
            accepted.append((operation, part))
    replay = Table(dataset=table.dataset, live={table.key(values): values for values in start})
    result = run(replay, accepted)

    assert result.conflicts == ()
    assert {at: RowCounts(**each) for at, each in enumerate(counts)} == result.counts
    changes = feed(result)
    assert by_key(table, changes) == by_key(table, table.feed)
    folded = fold([(Op.APPEND, values) for values in start] + changes, table.dataset.record_key)
    assert {table.key(values): values for values in folded} == table.live
    touched = {table.key(values) for _, part in accepted for values in part}
    current = [values for values in start if table.key(values) in touched]
    kept = [values for values, stays in zip(current, result.kept, strict=True) if stays]
    stored = {
        table.key(values): values for values in kept + result.rows.drop_columns(list(META_NAMES)).to_pylist()
    }
    assert stored == {key: values for key, values in table.live.items() if key in touched}
    assert len(kept) + result.rows.num_rows == len(stored)


@settings(max_examples=200, deadline=None)
@given(before=st.lists(rows, max_size=4), writes=st.lists(write, min_size=1, max_size=5))
def test_failing_the_certain_ones_again_and_again_fails_what_the_serial_order_fails(
    before: list[Row], writes: list[tuple[Operation, list[Row]]]
) -> None:
    table = Table(dataset=dataset(ordered=False))
    table.apply(Operation.UPSERT, before)
    serial = Table(dataset=table.dataset, live=dict(table.live))
    expected = set()
    for at, (operation, part) in enumerate(writes):
        if serial.conflicts(operation, part):
            expected.add(at)
        else:
            serial.apply(operation, part)
    remaining = dict(enumerate(writes))
    failed: set[int] = set()
    while remaining:
        numbers = list(remaining)
        result = run(table, list(remaining.values()))
        message = CommitMessage(file_group="g", conflicts=result.conflicts)
        certain = {numbers[at] for at in failed_writes([message])}
        if not certain:
            assert result.conflicts == ()
            break
        failed |= certain
        remaining = {at: each for at, each in remaining.items() if at not in certain}
    assert failed == expected


def test_a_late_row_changes_nothing_and_emits_nothing() -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.UPSERT, [row("a", ts=4, price=None)])])
    assert result.kept.tolist() == [True]
    assert (result.rows.num_rows, result.changes.num_rows) == (0, 0)
    assert result.counts == {0: RowCounts(unchanged=1)}


def test_equal_ordering_values_let_the_later_arrival_win() -> None:
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
def test_a_late_delete_loses_and_one_without_an_ordering_value_wins(ts: int | None, deleted: bool) -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.DELETE, [row("a", ts=ts)])])
    assert result.kept.tolist() == [not deleted]
    assert result.counts == {0: RowCounts(deleted=int(deleted), unchanged=int(not deleted))}


def test_a_delete_leaves_no_tombstone() -> None:
    table = Table(dataset=dataset(ordered=True))
    table.apply(Operation.UPSERT, [row("a", ts=5)])
    result = run(table, [(Operation.DELETE, [row("a", ts=None)]), (Operation.UPSERT, [row("a", ts=1)])])
    assert [op for op, _ in feed(result)] == [Op.RETRACT, Op.APPEND]


def test_retractions_carry_the_values_that_were_there() -> None:
    table = Table(dataset=dataset(ordered=False))
    stored = row("a", ts=7, n=3, tags=[("x", [1, None])])
    table.apply(Operation.UPSERT, [stored])
    result = run(
        table, [(Operation.DELETE, [{"k": "a", "n": None, "ts": None, "price": None, "tags": None}])]
    )
    assert feed(result) == [(Op.RETRACT, stored)]


def test_an_insert_of_a_live_key_names_key_and_cause() -> None:
    table = Table(dataset=dataset(ordered=False))
    table.apply(Operation.UPSERT, [row("a")])
    result = run(
        table, [(Operation.INSERT, [row("b")]), (Operation.BULK_INSERT, [row("a"), row("b"), row("c")])]
    )
    (conflict,) = result.conflicts
    assert (conflict.job, conflict.count, conflict.blamed) == (1, 2, (-1, 0))
    assert conflict.keys == ({"k": "a"}, {"k": "b"})


def test_an_unchanged_row_of_nested_values_is_recognised() -> None:
    table = Table(dataset=dataset(ordered=False))
    table.apply(Operation.UPSERT, [row("a", tags=[("x", [1, None])])])
    same = run(table, [(Operation.UPSERT, [row("a", tags=[("x", [1, None])])])])
    other = run(table, [(Operation.UPSERT, [row("a", tags=[("x", [1, 0])])])])
    assert (same.counts[0].unchanged, other.counts[0].updated) == (1, 1)
    assert np.array_equal(same.kept, [True])
