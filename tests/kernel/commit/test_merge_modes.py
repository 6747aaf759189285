"""The merge modes one rule at a time: what a reader of the documents would try."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import Aggregate, BucketMode, DatasetDefinition, MergeMode
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateField,
    CreateSchema,
    CreateSequenceGroup,
)
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, META_NAMES, OFFSET_COLUMN, VERSION_COLUMN
from tests.kernel.commit.merging import current_rows, dataset, feed, incoming_rows, intents, row
from tests.kernel.commit.reference import Row, RowChange, Write


def run(
    definition: DatasetDefinition,
    live: list[Row],
    *row_changes: RowChange,
    operation: Operation = Operation.UPSERT,
    **options: Any,
) -> MergeResult:
    writes = [Write(operation=operation, rows=row_changes, **options)]
    return merge(
        definition,
        current_rows(definition, live),
        incoming_rows(definition, writes),
        intents(definition, writes),
    )


def after(result: MergeResult, live: list[Row]) -> list[Row]:
    kept = [values for values, stays in zip(live, result.stays, strict=True) if stays]
    return kept + result.rows.drop_columns(list(META_NAMES)).to_pylist()


def puts(values: Row) -> RowChange:
    return (Op.APPEND, values)


def deletes(values: Row) -> RowChange:
    return (Op.RETRACT, values)


def aggregate(field: str, function: Aggregate, *, ordered: bool = True, **parts: Any) -> DatasetDefinition:
    return dataset(ordered=ordered, merge_mode=MergeMode.AGGREGATE, aggregates={field: function}, **parts)


@pytest.mark.parametrize(
    ("function", "field", "stored", "newer", "after_newer", "after_older"),
    [
        (Aggregate.SUM, "big", 2, 3, 5, 5),
        (Aggregate.SUM, "big", None, 3, 3, 3),
        (Aggregate.SUM, "big", 2, None, 2, 2),
        (Aggregate.SUM, "price", Decimal("1.25"), Decimal("-2.50"), Decimal("-1.25"), Decimal("-1.25")),
        (Aggregate.SUM, "ratio", 0.5, 0.25, 0.75, 0.75),
        (Aggregate.MIN, "name", "b", "a", "a", "a"),
        (Aggregate.MIN, "big", None, 4, 4, 4),
        (Aggregate.MAX, "price", Decimal("1.00"), Decimal("2.00"), Decimal("2.00"), Decimal("2.00")),
        (Aggregate.COUNT, "big", 7, 100, 8, 8),
        (Aggregate.COUNT, "big", 7, None, 7, 7),
        (Aggregate.LAST, "name", "a", "b", "b", "a"),
        (Aggregate.LAST, "name", "a", None, None, "a"),
        (Aggregate.LAST_NON_NULL, "name", "a", "b", "b", "a"),
        (Aggregate.LAST_NON_NULL, "name", "a", None, "a", "a"),
        (Aggregate.LAST_NON_NULL, "name", None, "b", "b", "b"),
        (Aggregate.FIRST, "name", "a", "b", "a", "a"),
        (Aggregate.FIRST, "name", None, "b", None, None),
        (Aggregate.BOOL_AND, "flag", True, False, False, False),
        (Aggregate.BOOL_AND, "flag", None, True, True, True),
        (Aggregate.BOOL_OR, "flag", False, True, True, True),
        (Aggregate.BOOL_OR, "flag", True, None, True, True),
        (Aggregate.COLLECT, "items", [{"a": 1}], [None, {"a": 2}], [{"a": 1}, None, {"a": 2}], ...),
        (Aggregate.COLLECT, "items", None, [], [], ...),
        (Aggregate.COLLECT, "items", [{"a": 1}], None, [{"a": 1}], ...),
    ],
)
def test_aggregate_folds_a_row_into_the_stored_one(
    function: Aggregate, field: str, stored: Any, newer: Any, after_newer: Any, after_older: Any
) -> None:
    definition = aggregate(field, function)
    live = [row("a", ts=5, **{field: stored})]
    for ts, expected in ((5, after_newer), (6, after_newer), (4, after_older)):
        (found,) = after(run(definition, live, puts(row("a", ts=ts, **{field: newer}))), live)
        assert found[field] == (after_newer if expected is ... else expected)
        assert found["ts"] == max(ts, 5)


def test_rows_of_one_write_are_folded_in_order_of_arrival() -> None:
    definition = aggregate("items", Aggregate.COLLECT)
    row_changes = [puts(row("a", ts=ts, items=[{"a": ts}])) for ts in (3, 1, 2, 5, 4)] + [
        puts(row("b", name="x"))
    ]
    result = run(definition, [], *row_changes)
    assert {each["k"]: each["items"] for each in after(result, [])} == {
        "a": [{"a": 3}, {"a": 1}, {"a": 2}, {"a": 5}, {"a": 4}],
        "b": None,
    }
    assert result.counts == {0: RowCounts(inserted=2, unchanged=4)}


def test_delete_within_a_write_discards_the_rows_before_it() -> None:
    definition = aggregate("big", Aggregate.SUM, ordered=False)
    live = [row("a", big=10)]
    result = run(
        definition,
        live,
        puts(row("a", big=1)),
        deletes(row("a")),
        puts(row("a", big=2)),
        puts(row("a", big=3)),
    )
    assert [(op, values["big"]) for op, values in feed(result)] == [(Op.CORRECT_FROM, 10), (Op.CORRECT_TO, 5)]
    assert result.counts == {0: RowCounts(updated=1, unchanged=3)}


def test_late_delete_within_a_write_keeps_a_newer_live_row() -> None:
    definition = aggregate("big", Aggregate.SUM)
    live = [row("a", ts=5, big=10)]
    result = run(definition, live, deletes(row("a", ts=3)), puts(row("a", ts=4, big=1)))
    assert [each["big"] for each in after(result, live)] == [11]


def test_snapshot_replaces_aggregate_states() -> None:
    definition = aggregate("big", Aggregate.COUNT, ordered=False)
    live = [row("a", big=7)]
    again = run(definition, live, puts(row("a", big=7)), operation=Operation.SNAPSHOT)
    assert again.counts == {0: RowCounts(unchanged=1)}
    twice = run(definition, live, puts(row("a", big=7)), puts(row("a", big=2)), operation=Operation.SNAPSHOT)
    assert [each["big"] for each in after(twice, live)] == [9]


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("size", [100, 100]),
        ("size", [-100, -100]),
        ("big", [2**63 - 1, 1]),
        ("price", [Decimal("99999999.99"), Decimal("0.01")]),
        ("ratio", [1.7e308, 1.7e308]),
    ],
)
def test_overflowing_sum_fails_its_write(field: str, values: list[Any]) -> None:
    definition = aggregate(field, Aggregate.SUM, ordered=False)
    live = [row("a", **{field: values[0]})]
    result = run(definition, live, puts(row("a", **{field: values[1]})))
    (conflict,) = result.conflicts
    assert (conflict.job, conflict.overflow_field, conflict.keys, conflict.count) == (
        0,
        field,
        ({"k": "a"},),
        1,
    )
    assert (result.rows.num_rows, result.changes.num_rows) == (0, 0)


def test_sum_is_checked_after_all_rows_of_the_write() -> None:
    definition = aggregate("size", Aggregate.SUM, ordered=False)
    live = [row("a", size=-120)]
    result = run(definition, live, *(puts(row("a", size=100)) for _ in range(2)))
    assert [each["size"] for each in after(result, live)] == [80]


def partial(*, ordered: bool = False, groups: bool = False, **parts: Any) -> DatasetDefinition:
    if groups:
        parts["sequence_groups"] = [CreateSequenceGroup(ordering_field="g", fields=["name", "items"])]
    return dataset(ordered=ordered, merge_mode=MergeMode.PARTIAL, **parts)


def test_partial_merge_prefers_values_that_are_not_null() -> None:
    live = [row("a", name="x", big=1, tags=[("t", [1])])]
    result = run(partial(), live, puts(row("a", ts=None, name="y")), puts(row("a", ts=None, flag=True)))
    assert after(result, live) == [row("a", name="y", flag=True, big=1, tags=[("t", [1])])]


def test_late_row_fills_only_nulls() -> None:
    live = [row("a", ts=5, name="x")]
    result = run(partial(ordered=True), live, puts(row("a", ts=4, name="y", big=1)))
    assert after(result, live) == [row("a", ts=5, name="x", big=1)]


@pytest.mark.parametrize(
    ("stored", "row_changes", "taken"),
    [(None, 1, True), (1, 1, True), (1, 2, True), (2, 1, False), (1, None, False), (None, None, False)],
)
def test_sequence_group_is_replaced_as_a_whole(
    stored: int | None, row_changes: int | None, taken: bool
) -> None:
    live = [row("a", g=stored, name="x", items=[], big=1)]
    result = run(partial(groups=True), live, puts(row("a", g=row_changes, name=None, items=[None], big=2)))
    group = (
        {"g": row_changes, "name": None, "items": [None]}
        if taken
        else {"g": stored, "name": "x", "items": []}
    )
    assert after(result, live) == [row("a", big=2, **group)]


def test_sequence_group_of_a_new_row_without_its_ordering_value_stays_null() -> None:
    result = run(partial(groups=True), [], puts(row("a", g=None, name="x", big=2)))
    assert after(result, []) == [row("a", big=2)]


def test_greatest_sequence_value_wins_within_a_write() -> None:
    row_changes = [
        puts(row("a", g=g, name=name)) for g, name in ((1, "x"), (3, "y"), (3, "z"), (None, "q"), (2, "w"))
    ]
    result = run(partial(groups=True), [], *row_changes)
    assert after(result, []) == [row("a", g=3, name="z")]


def test_first_mode_keeps_the_first_row() -> None:
    definition = dataset(merge_mode=MergeMode.FIRST)
    live = [row("a", big=1)]
    result = run(definition, live, puts(row("a", big=2)), puts(row("b", big=3)), puts(row("b", big=4)))
    assert sorted((each["k"], each["big"]) for each in after(result, live)) == [("a", 1), ("b", 3)]
    assert result.counts == {0: RowCounts(inserted=1, unchanged=2)}


@pytest.mark.parametrize(
    ("mode", "moves", "value"),
    [
        (MergeMode.EVENT_TIME, True, "new"),
        (MergeMode.COMMIT_TIME, True, "new"),
        (MergeMode.FIRST, False, "old"),
        (MergeMode.PARTIAL, False, "new"),
        (MergeMode.AGGREGATE, False, "new"),
    ],
)
def test_row_with_another_partition_moves_or_stays_by_merge_mode(
    mode: MergeMode, moves: bool, value: str
) -> None:
    bucket = CreateBucket(mode=BucketMode.KEY_DYNAMIC)
    ordered = mode is MergeMode.EVENT_TIME
    definition = dataset(ordered=ordered, merge_mode=mode, partition_by=["n"], bucket=bucket)
    live = [row("a", n=1, name="old")]
    (found,) = after(run(definition, live, puts(row("a", n=2, name="new"))), live)
    assert (found["n"], found["name"]) == (2 if moves else 1, value)


def test_correction_of_a_changelog_is_one_update() -> None:
    live = [row("a", ts=5, name="x")]
    changes = [(Op.CORRECT_FROM, row("a", ts=5, name="x")), (Op.CORRECT_TO, row("a", ts=5, name="y"))]
    result = run(dataset(ordered=True), live, *changes, operation=Operation.CHANGELOG)
    assert [(op, values["name"]) for op, values in feed(result)] == [
        (Op.CORRECT_FROM, "x"),
        (Op.CORRECT_TO, "y"),
    ]
    assert result.counts == {0: RowCounts(updated=1, unchanged=1)}


def test_correction_of_a_changelog_obeys_the_merge_mode() -> None:
    live = [row("a", ts=5, name="x")]
    changes = [(Op.CORRECT_FROM, row("a", ts=None)), (Op.CORRECT_TO, row("a", ts=4, name="y"))]
    late = run(dataset(ordered=True), live, *changes, operation=Operation.CHANGELOG)
    assert late.counts == {0: RowCounts(unchanged=1, late=1)}
    gap = [(Op.CORRECT_FROM, row("a", ts=5)), (Op.CORRECT_TO, row("a", ts=6, big=1))]
    pieces = run(partial(ordered=True), live, *gap, operation=Operation.CHANGELOG)
    assert after(pieces, live) == [row("a", ts=6, name="x", big=1)]


def test_row_assembled_from_a_late_piece_keeps_its_ordering_value() -> None:
    definition = partial(ordered=True)
    writes = [
        Write(operation=Operation.UPSERT, rows=[puts(row("a", ts=ts, **values))])
        for ts, values in ((2, {"big": 1}), (3, {"name": "y"}))
    ]
    live = [row("a", ts=5, name="x")]
    result = merge(
        definition,
        current_rows(definition, live),
        incoming_rows(definition, writes),
        intents(definition, writes),
    )
    assert after(result, live) == [row("a", ts=5, name="x", big=1)]


def test_correction_that_moves_to_another_key_deletes_the_first() -> None:
    live = [row("a", name="x")]
    changes = [(Op.CORRECT_FROM, row("a")), (Op.CORRECT_TO, row("b"))]
    result = run(dataset(), live, *changes, operation=Operation.CHANGELOG)
    assert [(op, values["k"]) for op, values in feed(result)] == [(Op.RETRACT, "a"), (Op.APPEND, "b")]


def test_old_row_of_a_correction_has_no_effect_where_rows_are_ordered() -> None:
    live = [row("a", ts=5, name="x")]
    alone = [(Op.CORRECT_FROM, row("a", ts=5, name="x"))]
    for changes, counts in (
        (alone, RowCounts(unchanged=1)),
        ([*alone, (Op.CORRECT_TO, row("a", ts=4))], RowCounts(unchanged=1, late=1)),
    ):
        result = run(dataset(ordered=True), live, *changes, operation=Operation.CHANGELOG, keep=9)
        assert (after(result, live), result.tombstones, result.counts) == (live, None, {0: counts})


def test_row_after_a_delete_without_an_ordering_value_is_new() -> None:
    live = [row("a", ts=5)]
    result = run(dataset(ordered=True), live, deletes(row("a", ts=None)), puts(row("a", ts=1)))
    assert after(result, live) == [row("a", ts=1)]


def test_inserts_of_live_keys_are_dropped_or_quarantined_by_option() -> None:
    live = [row("a", big=1)]
    row_changes = [puts(row("a", big=2)), puts(row("b", big=3)), puts(row("b", big=4))]
    dropped = run(dataset(), live, *row_changes, operation=Operation.INSERT, drop=True)
    assert dropped.counts == {0: RowCounts(inserted=1, unchanged=2)}
    quarantined = run(dataset(), live, *row_changes, operation=Operation.BULK_INSERT, quarantine=True)
    assert quarantined.counts == {0: RowCounts(inserted=1, unchanged=1, quarantined=1)}
    assert [
        (each["big"], each["_hw_row"], each["_hw_job"]) for each in quarantined.quarantined_rows.to_pylist()
    ] == [(2, 0, 0)]


def test_rows_that_would_be_folded_together_are_quarantined_together() -> None:
    definition = aggregate("big", Aggregate.SUM, ordered=False)
    result = run(
        definition,
        [row("a", big=1)],
        *(puts(row("a", big=number)) for number in (2, 3)),
        operation=Operation.INSERT,
        quarantine=True,
    )
    assert [each["big"] for each in result.quarantined_rows.to_pylist()] == [2, 3]
    assert result.counts == {0: RowCounts(quarantined=2)}


def test_merged_log_rows_keep_their_version_and_offset() -> None:
    definition = dataset(ordered=True, merge_mode=MergeMode.PARTIAL)
    live = [row("a", ts=1, name="x"), row("b", ts=1)]
    writes = [
        Write(operation=Operation.CHANGELOG, rows=[puts(row("a", ts=2, big=1)), puts(row("c"))]),
        Write(
            operation=Operation.CHANGELOG,
            rows=[puts(row("a", ts=3, big=1, name="y")), deletes(row("b", ts=2))],
        ),
    ]
    incoming = incoming_rows(definition, writes)
    for name, numbers in ((VERSION_COLUMN, [5, 5, 6, 6]), (OFFSET_COLUMN, [200, 201, None, 203])):
        incoming = incoming.append_column(name, [numbers])
    result = merge(definition, current_rows(definition, live), incoming, intents(definition, writes))
    found = {
        each["k"]: (each["name"], each[VERSION_COLUMN], each[OFFSET_COLUMN])
        for each in result.rows.to_pylist()
    }
    assert found == {"a": ("y", 6, None), "c": (None, 5, 201)}
    assert result.stays.tolist() == [False, False]
    corrects = result.changes.column(CORRECTS_COLUMN).to_pylist()
    assert corrects == [100, None, None, 200, None, 101]


def test_nested_partition_sources_stay_whole() -> None:
    fields = [
        CreateField(name="k", type="string"),
        CreateField(name="place", type="struct<country: string, city: string>"),
        CreateField(name="hits", type="int64"),
    ]
    definition = dataset(
        schema=CreateSchema(fields=fields),
        merge_mode=MergeMode.AGGREGATE,
        aggregates={"hits": Aggregate.SUM},
        partition_by=["place.country"],
        bucket=CreateBucket(mode=BucketMode.KEY_DYNAMIC),
    )
    live = [{"k": "a", "place": {"country": "fr", "city": "Nice"}, "hits": 1}]
    result = run(definition, live, puts({"k": "a", "place": {"country": "it", "city": "Rome"}, "hits": 2}))
    assert after(result, live) == [{"k": "a", "place": {"country": "fr", "city": "Nice"}, "hits": 3}]
