"""Rows as CSV are the same bytes however their table is cut into chunks."""

from __future__ import annotations

import itertools
import random

import pyarrow as pa
import pytest

from app.kernel.codecs.csv.encode_csv import encode_csv

TABLE = pa.table(
    {
        "id": [1, 2, 3, 4],
        "note": ["a", "", None, 'b "c"\n'],
        "tags": pa.array([["x"], [], None, ["y", None]], pa.list_(pa.string())),
        "price": pa.array([1.5, None, 2.0, -1.0]),
    }
)
ROWS = b'1,"a","[""x""]",1.5\n2,"","[]",\n3,,,2\n4,"b ""c""\n","[""y"",null]",-1\n'


@pytest.mark.parametrize(
    "bounds", [(0, 4), (0, 0, 4), (0, 4, 4), (0, 2, 2, 4), (0, 0, 0, 1, 1, 4, 4)], ids=str
)
def test_chunks_without_rows_write_nothing(bounds: tuple[int, ...]) -> None:
    parts = [TABLE.slice(start, end - start) for start, end in itertools.pairwise(bounds)]
    assert encode_csv(pa.concat_tables(parts)) == ROWS


@pytest.mark.parametrize("seed", range(50))
def test_columns_in_chunks_of_their_own(seed: int) -> None:
    chance = random.Random(seed)

    def cut(column: pa.ChunkedArray) -> pa.ChunkedArray:
        bounds = [0, *sorted(chance.choices(range(5), k=chance.randrange(6))), 4]
        chunks = [column.slice(at, end - at).chunks for at, end in itertools.pairwise(bounds)]
        return pa.chunked_array([each for some in chunks for each in some], column.type)

    assert encode_csv(pa.table({name: cut(TABLE[name]) for name in TABLE.column_names})) == ROWS


def test_table_without_rows_is_empty() -> None:
    assert encode_csv(TABLE.slice(0, 0)) == b""
