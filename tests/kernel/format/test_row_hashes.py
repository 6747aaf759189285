"""Hashes of rows depend on their values only."""

from __future__ import annotations

import pyarrow as pa

from app.kernel.format.rows.row_hashes import row_hashes

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 2, None], pa.int64()),
        "note": pa.array(["a", None, None, None]),
        "price": pa.array([1.5, 2.5, 2.5, None]),
        "tags": pa.array([["x"], None, None, ["x"]], pa.list_(pa.string())),
        "hidden": pa.nulls(4, pa.string()),
    }
)


def test_equal_rows_have_equal_hashes_wherever_they_are() -> None:
    hashes = row_hashes(ROWS).tolist()
    assert hashes[1] == hashes[2]
    assert len(set(hashes)) == 3
    for at in range(4):
        assert row_hashes(ROWS.slice(at, 1)).tolist() == [hashes[at]]
    assert row_hashes(ROWS.take([3, 1, 0])).tolist() == [hashes[3], hashes[1], hashes[0]]
    assert row_hashes(ROWS.slice(0, 0)).tolist() == []


def test_every_column_and_null_counts() -> None:
    hashes = {
        int(row_hashes(ROWS.set_column(at, "x", pa.nulls(4, ROWS.schema[at].type)))[0]) for at in range(4)
    }
    assert len(hashes | {int(row_hashes(ROWS)[0])}) == 5
    texts = pa.table({"a": ["", None]})
    assert len(set(row_hashes(texts).tolist())) == 2
