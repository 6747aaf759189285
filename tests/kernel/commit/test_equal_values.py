"""Which values are equal: maps with the same entries in any order, lists with the same elements in order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.commit.comparison import RowDifferences, compare_rows
from app.kernel.commit.merge.merge import merge
from app.kernel.commit.merge.values import equal_rows, row_codes
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from tests.kernel.commit.merging import current_rows, dataset, feed, incoming_rows, intents, row
from tests.kernel.commit.reference import Write
from tests.support.examples import a_third_of

MAP = pa.map_(pa.string(), pa.int64())
ONE, OTHER = [("a", 1), ("b", None)], [("b", None), ("a", 1)]
TAGS, TURNED = [("a", [1]), ("b", [2, 3])], [("b", [2, 3]), ("a", [1])]


@pytest.mark.parametrize(
    ("kind", "one", "other", "equal"),
    [
        (MAP, ONE, OTHER, True),
        (MAP, ONE, [("a", None), ("b", 1)], False),
        (MAP, ONE, [("a", 1)], False),
        (MAP, [], None, False),
        (pa.list_(MAP), [ONE, []], [OTHER, []], True),
        (pa.list_(MAP), [ONE, []], [[], OTHER], False),
        (pa.list_(MAP), [ONE[:1], ONE[1:]], [ONE[1:], ONE[:1]], False),
        (pa.struct({"m": MAP, "n": pa.int8()}), {"m": ONE, "n": 1}, {"m": OTHER, "n": 1}, True),
        (pa.struct({"m": MAP, "n": pa.int8()}), {"m": ONE, "n": 1}, {"m": OTHER, "n": 2}, False),
        (pa.map_(pa.date32(), MAP), [(1, ONE), (2, [])], [(2, []), (1, OTHER)], True),
        (pa.map_(pa.date32(), MAP), [(1, ONE), (2, [])], [(1, []), (2, OTHER)], False),
        (pa.map_(pa.string(), pa.list_(pa.int8())), [("a", [1, 2])], [("a", [2, 1])], False),
        # No write stores a key twice; the entries of such a map would be a multiset.
        (MAP, [("a", 1), ("a", 2)], [("a", 2), ("a", 1)], True),
        (MAP, [("a", 1), ("a", 1)], [("a", 1)], False),
    ],
)
def test_maps_are_equal_whatever_the_order_of_their_entries(
    kind: pa.DataType, one: Any, other: Any, equal: bool
) -> None:
    first, second = (pa.table({"x": pa.array([value, None], kind)}) for value in (one, other))
    assert equal_rows(first, second).tolist() == [equal, True]
    codes = row_codes(pa.concat_tables([first, second]))
    assert bool(codes[0] == codes[2]) is equal


ENTRIES = st.dictionaries(st.sampled_from("abc"), st.sampled_from([None, 0, 1]), max_size=3)
VALUES = st.one_of(st.none(), st.lists(st.one_of(st.none(), ENTRIES), max_size=3))


@settings(max_examples=a_third_of(150), deadline=None)
@given(st.lists(VALUES, max_size=8))
def test_codes_of_lists_of_maps_are_equal_as_python_values_are(values: list[Any]) -> None:
    pairs = [
        None if each is None else [None if entries is None else list(entries.items()) for entries in each]
        for each in values
    ]
    # A slice has offsets that do not begin at 0.
    column = pa.array([[[("z", 9)]], *pairs], pa.list_(MAP)).slice(1)
    codes = row_codes(pa.table({"x": column}))
    assert [[one == other for other in codes] for one in codes] == [
        [one == other for other in values] for one in values
    ]


def test_upsert_of_entries_in_another_order_changes_nothing() -> None:
    writes = [Write(operation=Operation.UPSERT, rows=[(Op.APPEND, row("k", tags=TURNED))])]
    result = merge(
        dataset(),
        current_rows(dataset(), [row("k", tags=TAGS)]),
        incoming_rows(dataset(), writes),
        intents(dataset(), writes),
    )
    assert (feed(result), result.counts) == ([], {0: RowCounts(unchanged=1)})


def test_snapshot_without_a_key_keeps_rows_with_entries_in_another_order() -> None:
    heap = dataset(key=[])
    writes = [Write(operation=Operation.SNAPSHOT, rows=[(Op.APPEND, row("k", tags=TURNED))])]
    result = merge(
        heap,
        current_rows(heap, [row("k", tags=TAGS)]),
        incoming_rows(heap, writes),
        intents(heap, writes),
        retract_rest=True,
    )
    assert (feed(result), result.counts) == ([], {0: RowCounts(unchanged=1)})


def test_retraction_without_a_key_finds_its_row_by_entries_in_another_order() -> None:
    heap = dataset(key=[])
    writes = [Write(operation=Operation.CHANGELOG, rows=[(Op.RETRACT, row("k", tags=TURNED))])]
    result = merge(
        heap, current_rows(heap, [row("k", tags=TAGS)]), incoming_rows(heap, writes), intents(heap, writes)
    )
    # The change has the row as it is stored.
    assert [(op, values["tags"]) for op, values in feed(result)] == [(Op.RETRACT, TAGS)]


@pytest.mark.parametrize("key", [["k"], []])
def test_comparison_reports_no_difference_between_orders_of_entries(key: list[str]) -> None:
    heap = dataset(key=key)
    before, after = (
        pa.Table.from_pylist([row("k", tags=tags)], schema=heap.schema.to_arrow()) for tags in (TAGS, TURNED)
    )
    assert compare_rows(heap, before, after) == RowDifferences(unchanged_rows=1)
