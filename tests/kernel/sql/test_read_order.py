"""Orders of rows: sorted like a plain model, and cut into ranges that join to the same."""

from __future__ import annotations

import math
from functools import cmp_to_key
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.errors import InvalidRequest
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.read_order import (
    ReadOrder,
    RunSlice,
    SortedRun,
    check_order,
    cut_ranges,
    first_keys,
    in_order,
    order_of_range,
    parse_order,
)
from tests.support.examples import a_third_of

# Names that Arrow would take for paths, and that mean something to SQL.
NAMES = (".n`; DROP TABLE t; --", '"text"', "a.b[0]")
SCHEMA = pa.schema([(NAMES[0], pa.int32()), (NAMES[1], pa.string()), (NAMES[2], pa.float64())])
VALUES = st.fixed_dictionaries(
    {
        NAMES[0]: st.none() | st.integers(-2, 2),
        NAMES[1]: st.none() | st.sampled_from(["", "a", "B", "ä", "z", "\U0001f600", "\uffff"]),
        NAMES[2]: st.none() | st.sampled_from([0.5, -0.0, 0.0, -math.inf, math.nan]),
    }
)
ROWS = st.lists(VALUES, max_size=40)
ORDERS = st.lists(
    st.builds(ReadOrder, column=st.sampled_from(NAMES), descending=st.booleans()),
    min_size=1,
    max_size=3,
    unique_by=lambda key: key.column,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


def compared(order: list[ReadOrder], one: dict[str, Any], other: dict[str, Any]) -> int:
    """Below zero if the one stands first, 0 if the order does not decide."""
    for key in order:
        places = [_place(row[key.column]) for row in (one, other)]
        if places[0] == places[1]:
            continue
        # What is no value, or no number, comes behind, whichever way.
        turned = key.descending and places[0][0] == places[1][0] == 0
        return 1 if (places[0] > places[1]) != turned else -1
    return 0


def _place(value: Any) -> tuple[int, Any]:
    if value is None:
        return 2, 0
    if isinstance(value, float) and math.isnan(value):
        return 1, 0
    return 0, value.encode() if isinstance(value, str) else value


def is_sorted(order: list[ReadOrder], rows: list[dict[str, Any]]) -> bool:
    return all(compared(order, one, other) <= 0 for one, other in pairwise(rows))


def same(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    return _texts(one) == _texts(other)


def _texts(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


@settings(max_examples=a_third_of(60), deadline=None)
@given(rows=ROWS, order=ORDERS, limit=st.none() | st.integers(0, 50))
def test_rows_are_sorted_like_the_model(
    rows: list[dict[str, Any]], order: list[ReadOrder], limit: int | None
) -> None:
    found = in_order(table(rows), order, limit=limit).to_pylist()
    expected = sorted(rows, key=cmp_to_key(lambda one, other: compared(order, one, other)))
    expected = expected if limit is None else expected[:limit]
    assert is_sorted(order, found)
    assert len(found) == len(expected)
    assert all(compared(order, one, other) == 0 for one, other in zip(found, expected, strict=True))
    if limit is None:
        assert same(found, rows)


@settings(max_examples=a_third_of(80), deadline=None)
@given(
    runs=st.lists(st.lists(VALUES, min_size=1, max_size=30), max_size=5),
    order=ORDERS,
    batch_rows=st.integers(1, 7),
    ranges=st.integers(1, 9),
)
def test_ranges_of_sorted_runs_join_to_all_rows_in_order(
    runs: list[list[dict[str, Any]]], order: list[ReadOrder], batch_rows: int, ranges: int
) -> None:
    tables = [in_order(table(rows), order) for rows in runs]
    sorted_runs = [
        SortedRun(
            path=str(number),
            row_count=each.num_rows,
            batch_rows=batch_rows,
            memory_bytes=each.num_rows,
            keys=first_keys(each, order, batch_rows),
        )
        for number, each in enumerate(tables)
    ]
    total = sum(each.num_rows for each in tables)
    cut = cut_ranges(sorted_runs, order, bytes_max=max(-(-total // ranges), 1))
    found: list[dict[str, Any]] = []
    for wanted in cut:
        batches = [
            (part, number, batch(tables, part, number)) for part in wanted.slices for number in numbers(part)
        ]
        chosen = order_of_range(batches, order, wanted)
        rows = pa.concat_tables([each for _, _, each in batches])
        found += rows.take(pa.array(chosen)).to_pylist()
        # A range reads no more than it has, but for a batch at each end of each run.
        assert rows.num_rows - len(chosen) <= 2 * batch_rows * len(wanted.slices)
    assert is_sorted(order, found)
    assert same(found, [row for rows in runs for row in rows])
    assert len(cut) <= ranges or total == 0


def numbers(part: RunSlice) -> range:
    return range(part.first_batch, part.end_batch)


def batch(tables: list[pa.Table], part: RunSlice, number: int) -> pa.Table:
    return tables[int(part.path)].slice(number * part.batch_rows, part.batch_rows)


def test_rows_with_equal_order_values_are_cut_into_ranges() -> None:
    order = [ReadOrder(column=NAMES[0])]
    rows = table([{NAMES[0]: 1, NAMES[1]: str(n), NAMES[2]: None} for n in range(100)])
    run = SortedRun(
        path="0", row_count=100, batch_rows=10, memory_bytes=1_000, keys=first_keys(rows, order, 10)
    )
    cut = cut_ranges([run], order, bytes_max=250)
    assert len(cut) == 4
    assert max(part.end_batch - part.first_batch for each in cut for part in each.slices) <= 4


@pytest.mark.parametrize(
    ("columns", "pointer", "reason"),
    [
        (["gone"], "/order_by/0/column", "there is no column 'gone'"),
        (["n", "n"], "/order_by/1/column", "more than once"),
        (["n", "places"], "/order_by/1/column", "have no order"),
        (["tags"], "/order_by/0/column", "have no order"),
        (["place"], "/order_by/0/column", "have no order"),
        (["place.city"], "/order_by/0/column", "there is no column"),
        (['n"; DROP TABLE jobs; --'], "/order_by/0/column", "there is no column"),
        (["`n`"], "/order_by/0/column", "there is no column"),
        (["n desc"], "/order_by/0/column", "there is no column"),
    ],
)
def test_order_by_a_type_without_an_order_is_refused(columns: list[str], pointer: str, reason: str) -> None:
    types = {
        "n": "int64",
        "places": "list<string>",
        "tags": "map<string, int32>",
        "place": "struct<city: string>",
    }
    fields = tuple(Field(id=at, name=name, type=kind) for at, (name, kind) in enumerate(types.items(), 1))
    with pytest.raises(InvalidRequest) as refused:
        check_order(Schema(id=1, fields=fields), [ReadOrder(column=name) for name in columns])
    (error,) = refused.value.facts["errors"]
    assert error["pointer"] == pointer
    assert reason in error["detail"]


def test_another_ending_of_a_column_is_refused_with_the_two_that_there_are() -> None:
    fields = (Field(id=1, name="n", type="int64"), Field(id=2, name="n:x", type="int64"))
    schema = Schema(id=1, fields=fields)
    assert parse_order(schema, ["n:x,n:desc"]) == (
        ReadOrder(column="n:x"),
        ReadOrder(column="n", descending=True),
    )
    with pytest.raises(InvalidRequest) as refused:
        parse_order(schema, ["n:down,gone:up"])
    assert [error["detail"] for error in refused.value.facts["errors"]] == [
        "expected n:asc or n:desc, got n:down",
        "there is no column 'gone:up'",
    ]
