"""The sizes of rows."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from app.kernel.format.rows.row_sizes import row_bytes, rows_within

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3], pa.int64()),
        "text": ["x" * 10, None, "y" * 1_000],
        "raw": [b"", b"z" * 50, None],
        "flag": [True, None, False],
        "list": [["a" * 100] * 3, [], None],
        "map": pa.array([[("k", 1)], None, [("long" * 10, 2)] * 5], pa.map_(pa.string(), pa.int32())),
        "struct": [{"a": "q" * 20, "b": [1, 2]}, None, {"a": None, "b": [7] * 90}],
        "day": pa.array([1, 2, None], pa.date32()),
        "none": pa.nulls(3),
    }
)


def test_sizes_add_up_to_about_the_table() -> None:
    sizes = row_bytes(TABLE)
    assert sizes.shape == (3,)
    assert TABLE.nbytes * 0.8 < sizes.sum() < TABLE.nbytes * 1.6
    assert sizes[2] > sizes[0] > sizes[1]


@pytest.mark.parametrize("start", [0, 1, 2])
def test_sizes_of_a_slice_are_those_of_its_rows(start: int) -> None:
    joined = pa.concat_tables([TABLE, TABLE.slice(1)])
    assert list(row_bytes(joined.slice(start))) == list(row_bytes(joined))[start:]


def test_names_are_counted_where_json_repeats_them() -> None:
    rows = pa.table({"s": [[{"a_member_with_a_long_name": True}] * 1_000]})
    text = len(json.dumps(rows.to_pylist(), separators=(",", ":")))
    assert row_bytes(rows)[0] < text / 10
    assert text * 0.8 < row_bytes(rows, with_names=True)[0] < text * 1.3


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("column", [*TABLE.column_names, "flat struct", "dictionary"])
def test_all_rows_fit_into_their_own_size_and_not_into_less(column: str, named: bool) -> None:
    members = pa.array([{"f": True, "t": None}, None, {"f": False, "t": "x" * 40}])
    more = {"flat struct": members, "dictionary": pa.array(["d" * 90] * 3).dictionary_encode()}
    rows = pa.table({column: more[column] if column in more else TABLE.column(column)})
    size = int(row_bytes(rows, with_names=named).sum())
    assert [rows_within(rows, size + more, with_names=named) for more in (0, 1, 10_000)] == [3, 3, 3]
    assert rows_within(rows, size - 1, with_names=named) < 3


def test_first_rows_within_a_limit_are_at_least_one() -> None:
    rows = pa.table({"t": ["x" * 96] * 10})
    assert rows_within(rows, 1) == 1
    assert rows_within(rows, 300) == 3
    assert rows_within(rows, 10_000) == 10
    assert rows_within(rows.slice(0, 0), 5) == 0


def test_rows_whose_dictionary_is_empty_have_no_texts() -> None:
    column = pa.DictionaryArray.from_arrays(pa.nulls(3, pa.int32()), pa.array([], pa.string()))
    rows = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "note": column})
    assert row_bytes(rows).tolist() == [8, 8, 8]
    assert rows_within(rows, 16) == 2
