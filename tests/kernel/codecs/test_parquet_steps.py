"""Steps in which Parquet files of clients are read: large for small rows, small for large ones."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, joined, open_parquet
from tests.support.shares import share

_ROWS = 70_000


def steps(table: pa.Table, row_group_rows: int) -> tuple[list[int], list[tuple[int, int]], pa.Table]:
    """The sizes of the steps, and the joined batches: first row and size of each, and their rows."""
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=row_group_rows)
    source = pa.BufferReader(out.getvalue())
    file = open_parquet(source)
    groups = range(file.metadata.num_row_groups)
    read = [batch.num_rows for _, batch in iter_row_groups(source, file, groups)]
    batches = list(joined(iter_row_groups(source, file, groups)))
    found = pa.Table.from_batches([batch for _, batch in batches])
    return read, [(row, batch.num_rows) for row, batch in batches], found


@pytest.mark.parametrize("row_group_rows", [_ROWS, 40_000, 500])
def test_steps_join_to_all_rows_in_order(row_group_rows: int) -> None:
    table = pa.table({"number": np.arange(_ROWS), "name": [f"name {at % 7}" for at in range(_ROWS)]})
    read, batches, found = steps(table, row_group_rows)
    assert found.equals(table)
    assert [row for row, _ in batches] == np.cumsum([0, *(size for _, size in batches)])[:-1].tolist()
    assert max(read) == min(row_group_rows, 32_768)


def test_steps_of_large_rows_are_small() -> None:
    table = pa.table({"text": [f"{at:06}" * 500 for at in range(4_000)]})
    read, _, found = steps(table, 4_000)
    assert found.equals(table)
    assert max(read) < 3_000


@share(2)
def test_steps_of_values_that_repeat_are_small() -> None:
    table = pa.table({"text": ["x" * 100_000] * 4_000})
    read, _, found = steps(table, 4_000)
    assert found.num_rows == 4_000
    assert max(read) * 100_000 <= 64 * 2**20


@pytest.mark.parametrize("order", ["LS", "SL", "LLSSL", "SLS"])
@pytest.mark.parametrize("type_", [pa.string(), pa.binary()])
def test_row_groups_with_large_and_small_values_of_lists_follow_each_other(
    order: str, type_: pa.DataType
) -> None:
    """Lists of large values (L) are read as dictionaries, others (S) are not."""
    values = [["x" * 2_000, "y"] if each == "L" else ["y"] for each in order]
    pairs = [[(text, text) for text in row] for row in values]
    expected = pa.table(
        {
            "id": range(len(order)),
            "list": pa.array(values, pa.list_(type_)),
            "map": pa.array(pairs, pa.map_(type_, type_)),
        }
    )
    out = io.BytesIO()
    pq.write_table(expected, out, row_group_size=1)
    source = pa.BufferReader(out.getvalue())
    file = open_parquet(source)
    batches = list(joined(iter_row_groups(source, file, range(len(order)))))
    found = [row for _, batch in batches for row in batch.to_pylist()]
    assert found == expected.to_pylist()
    assert [first for first, _ in batches] == np.cumsum([0, *(batch.num_rows for _, batch in batches)])[
        :-1
    ].tolist()
