"""Orders of clustered rows: a linear one is a sort, a curve grows with each of its columns, whatever their types."""

from __future__ import annotations

import datetime as dt
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.format.clustering import COLUMNS_MAX, ClusterBy, Curve, column_faults, interleaved, order_of
from app.kernel.format.policies import ClusterOrder
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import parse_type, to_arrow
from app.kernel.sql.read_order import ReadOrder, in_order
from tests.support.examples import a_third_of

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int8": st.integers(-128, 127),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "decimal(38, 4)": st.decimals(-(10**33), 10**33, places=4),
    "string": st.text(st.characters(codec="utf-8"), max_size=4) | st.just("a common beginning, then: ").map(str),
    "binary": st.binary(max_size=4),
    "date": st.dates(),
    "timestamp": st.datetimes(timezones=st.just(dt.UTC)),
    "timestamp_ntz(ms)": st.datetimes().map(lambda when: when.replace(microsecond=0)),
}  # fmt: skip


def table_of(kinds: list[str], rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table(
        {
            f"c{number}": pa.array([row[number] for row in rows], to_arrow(parse_type(kind)))
            for number, kind in enumerate(kinds)
        }
    )


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3))
    row = st.tuples(*(VALUES[kind] | st.none() for kind in kinds))
    pool = draw(st.lists(row, min_size=1, max_size=12))
    return table_of(kinds, pool + draw(st.lists(st.sampled_from(pool), max_size=8)))


def comes_at(value: Any) -> tuple[Any, ...]:
    """Where a value comes in its column: nulls last, before them what is no number."""
    if value is None:
        return (2, 0)
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value.encode() if isinstance(value, str) else value)


def keys_of(rows: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(comes_at(value) for value in row.values()) for row in rows.to_pylist()]


@settings(max_examples=a_third_of(40), deadline=None)
@given(rows=tables())
def test_linear_order_is_a_sort(rows: pa.Table) -> None:
    found = in_order(rows, [ReadOrder(column=name) for name in rows.column_names])
    assert keys_of(found) == sorted(keys_of(rows))


@settings(max_examples=a_third_of(40), deadline=None)
@given(rows=tables(), sampled=st.integers(1, 3))
def test_curve_position_is_monotonic_in_the_values(rows: pa.Table, sampled: int) -> None:
    """Also by a sample that has seen few of the rows."""
    places = Curve(rows.take(list(range(0, rows.num_rows, sampled)))).places(rows).to_pylist()
    keyed = list(zip(keys_of(rows), places, strict=True))
    for one, at in keyed:
        for other, behind in keyed:
            if all(mine <= theirs for mine, theirs in zip(one, other, strict=True)):
                assert at <= behind


@pytest.mark.parametrize("kind", sorted(VALUES))
def test_nulls_are_last_and_quantiles_are_distinct_on_a_curve(kind: str) -> None:
    examples: dict[str, list[Any]] = {
        "boolean": [False, True],
        "binary": [b"", b"a", b"b"],
        "string": ["customer-1", "customer-2", "customer-3"],
        "date": [dt.date(2024, 1, day) for day in range(1, 9)],
    }
    if "timestamp" in kind:
        zone = None if "ntz" in kind else dt.UTC
        values: list[Any] = [dt.datetime(2024, 1, day, tzinfo=zone) for day in range(1, 9)]
    elif "decimal" in kind:
        values = [decimal.Decimal(number) for number in range(-4, 4)]
    else:
        values = examples.get(kind, list(range(8)))
    rows = table_of([kind], [(None,), *((value,) for value in values)])
    null, *places = Curve(rows).places(rows).to_pylist()
    assert places == sorted(set(places))
    assert null > max(places)


def test_every_column_contributes_to_the_curve() -> None:
    """Though one is spread over all numbers and another has two values: a quarter of the curve is one of both."""
    chance = np.random.default_rng(5)
    wide = chance.integers(-(2**62), 2**62, 4_000)
    narrow = chance.integers(0, 2, 4_000)
    rows = pa.table({"wide": wide, "narrow": pa.array(narrow, pa.int8())})
    order = np.argsort(Curve(rows).places(rows).to_numpy(), kind="stable")
    halves = set()
    for quarter in np.array_split(order, 4):
        inner = quarter[50:-50]
        high = wide[inner] > np.median(wide)
        assert high.all() or not high.any()
        assert len(set(narrow[inner])) == 1
        halves.add((bool(high[0]), int(narrow[inner[0]])))
    assert len(halves) == 4


def test_sample_without_values_yields_one_position() -> None:
    rows = table_of(["int64"], [(3,), (1,), (None,)])
    first, second, null = Curve(rows.slice(2)).places(rows).to_pylist()
    assert first == second < null


@given(ranks=st.lists(st.tuples(*[st.integers(0, 255)] * 3), min_size=1))
def test_bits_are_interleaved(ranks: list[tuple[int, int, int]]) -> None:
    columns = [np.array(column, dtype=np.uint64) for column in zip(*ranks, strict=True)]
    for place, of_row in zip(interleaved(columns, 8).tolist(), ranks, strict=True):
        texts = [f"{rank:08b}" for rank in of_row]
        assert f"{place:024b}" == "".join(text[bit] for bit in range(8) for text in texts)


SCHEMA = Schema(
    id=1,
    fields=(
        Field(id=4, name="a", type="int64"),
        Field(id=7, name="b", type="string"),
        Field(id=9, name="tags", type="list<string>"),
        Field(id=11, name="at", type="struct<x: int32>"),
    ),
)


@pytest.mark.parametrize(
    ("columns", "faults"),
    [
        (["a", "b"], {}),
        ([], {"": "expected 1 to 8"}),
        (["a"] * (COLUMNS_MAX + 1), {"": "expected 1 to 8", "/1": "more than once"}),
        (["tags"], {"/0": "list<string>: lists, maps and structs have no order"}),
        (["a", "at", "c"], {"/1": "struct", "/2": "there is no column 'c'"}),
        (["at.x"], {"/0": "there is no column"}),
    ],
)
def test_columns_without_an_order_are_named(columns: list[str], faults: dict[str, str]) -> None:
    found = dict(column_faults(columns, SCHEMA))
    assert set(faults) <= set(found)
    assert not found or faults
    assert all(part in found[pointer] for pointer, part in faults.items())


def test_clustering_mark_encodes_column_ids_and_order() -> None:
    assert ClusterBy(columns=("b", "a")).mark(SCHEMA) == "linear:7,4"
    assert ClusterBy(columns=("a", "b"), order=ClusterOrder.Z_ORDER).mark(SCHEMA) == "z_order:4,7"
    for order in ClusterOrder:
        assert order_of(ClusterBy(columns=("a",), order=order).mark(SCHEMA)) is order
