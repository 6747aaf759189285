"""The order of rows by key: that of Arrow's sort, for keys of every type."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.rows.key_order import key_order

# Texts that share eight bytes or more, that end within them, or with the byte that shorter ones are filled up with.
_TEXTS = st.text(alphabet="aab\0ü€𐍈", max_size=12)
_INTEGERS = st.integers(-(2**63), 2**63 - 1)
_COLUMNS = st.sampled_from(
    [
        (pa.string(), _TEXTS),
        (pa.binary(), st.binary(max_size=10)),
        (pa.int64(), _INTEGERS),
        (pa.int8(), st.integers(-128, 127)),
        (pa.date32(), st.dates()),
        (pa.timestamp("us", tz="UTC"), st.datetimes(timezones=st.just(dt.UTC))),
        (pa.bool_(), st.booleans()),
        (pa.decimal128(10, 2), st.decimals("-5", "5", places=2)),
    ]
)


@st.composite
def keyed_rows(draw: st.DrawFn) -> pa.Table:
    """Rows of up to three key fields, in several chunks, some of which begin within a larger array."""
    columns = draw(st.lists(_COLUMNS, min_size=1, max_size=3))
    schema = pa.schema([(f"k{at}", kind) for at, (kind, _) in enumerate(columns)])
    keys = draw(st.lists(st.tuples(*(values for _, values in columns)), max_size=30))
    table = pa.table(
        [pa.array([key[at] for key in keys], kind) for at, (kind, _) in enumerate(columns)], schema=schema
    )
    cut = draw(st.integers(0, len(keys)))
    return pa.concat_tables([table.slice(cut), table.slice(0, cut)])


@given(keyed_rows())
def test_rows_are_in_the_order_of_arrow(rows: pa.Table) -> None:
    order = key_order(rows, rows.column_names)
    assert sorted(order.tolist()) == list(range(rows.num_rows))
    expected = rows.sort_by([(name, "ascending") for name in rows.column_names])
    assert rows.take(pa.array(order)).to_pylist() == expected.to_pylist()


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (["trip-0002", "trip-0001b", "trip-0001a"], [2, 1, 0]),
        (["a\0", "a", "a\0\0"], [1, 0, 2]),
        (["", "\0", ""], [0, 2, 1]),
        (["ü", "z", "€"], [1, 0, 2]),
    ],
)
def test_ties_of_the_first_bytes_are_decided_by_the_whole_key(
    keys: Sequence[str], expected: list[int]
) -> None:
    order = key_order(pa.table({"k": keys}), ["k"]).tolist()
    found: list[Any] = [keys[at] for at in order]
    assert found == [keys[at] for at in expected]
