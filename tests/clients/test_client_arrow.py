"""Rows as Arrow data, in each library that reads them, none of which the client requires."""

from __future__ import annotations

import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

from headwater_client import ArrowData, MissingPackage, NewDataset, NewField
from headwater_client.arrow import encoded_stream

ROWS = [{"id": 1, "note": "a"}, {"id": 2, "note": None}]
TABLE = pa.Table.from_pylist(ROWS, pa.schema({"id": pa.int64(), "note": pa.string()}))


def file_of(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


DATA = [
    ArrowData(parts=(encoded_stream(TABLE),)),
    ArrowData(parts=(file_of(TABLE),)),
    ArrowData(parts=(file_of(TABLE.slice(0, 1)), file_of(TABLE.slice(1)))),
]


@pytest.mark.parametrize("data", DATA, ids=["stream", "file", "two files"])
def test_arrow_data_has_the_same_rows_in_each_library(data: ArrowData) -> None:
    assert data.to_arrow() == TABLE
    assert data.to_polars().equals(pl.DataFrame(ROWS))
    frame = data.to_pandas()
    assert (list(frame["id"]), frame["note"][0], list(frame["note"].isna())) == ([1, 2], "a", [False, True])
    with duckdb.connect() as connection:
        assert data.to_duckdb(connection).aggregate("sum(id), count(note)").fetchall() == [(3, 1)]
    assert data.to_duckdb().filter("id = 2").fetchall() == [(2, None)]


@pytest.mark.parametrize(
    "table",
    [TABLE, TABLE.to_batches()[0], TABLE.to_reader(), pl.DataFrame(ROWS), TABLE.to_pandas()],
    ids=["table", "batch", "reader", "polars", "pandas"],
)
def test_tables_of_each_library_are_encoded(table: object) -> None:
    assert ipc.open_stream(encoded_stream(table)).read_all().to_pylist() == ROWS


FRAME = pd.DataFrame({"id": [3, 1, 2], "note": ["c", "a", None]})


@pytest.mark.parametrize(
    ("frame", "columns"),
    [
        (FRAME, ["id", "note"]),
        (FRAME[FRAME["id"] > 1], ["id", "note"]),
        (FRAME.sort_values("id"), ["id", "note"]),
        (
            FRAME.merge(FRAME, left_index=True, right_index=True, suffixes=("", "_2")),
            ["id", "note", "id_2", "note_2"],
        ),
        (FRAME.set_index("id").sort_index(), ["note", "id"]),
        (FRAME.groupby("id").count(), ["note", "id"]),
        (FRAME.set_index(pd.RangeIndex(3, name="number")), ["id", "note", "number"]),
        (FRAME.set_index(["id", pd.Index([7, 8, 9])]), ["note", "id"]),
        (pa.Table.from_pandas(FRAME.sort_values("id")), ["id", "note"]),
        (pa.RecordBatch.from_pandas(FRAME.sort_values("id")), ["id", "note"]),
        (pa.Table.from_pandas(FRAME.sort_values("id")).to_reader(), ["id", "note"]),
        (pa.table({"__index_level_0__": [1]}), ["__index_level_0__"]),
    ],
)
def test_an_index_without_a_name_is_left_out(frame: object, columns: list[str]) -> None:
    assert ipc.open_stream(encoded_stream(frame)).read_all().column_names == columns


def test_a_column_of_several_types_is_named() -> None:
    with pytest.raises(ValueError, match=r"cannot be sent: .*column odd .*; give each column one type"):
        encoded_stream(pd.DataFrame({"odd": ["a", 1]}))


def test_filtered_frames_with_times_of_pandas_are_written(service, headwater) -> None:
    times = pd.to_datetime(["2026-11-21T10:00:00.000001", "2026-11-21T11:00:00.000000"]).astype(
        "datetime64[ns]"
    )
    frame = pd.DataFrame({"id": [1, 2], "at": times})
    fields = (NewField(name="id", type="int32"), NewField(name="at", type="timestamp_ntz"))
    dataset = headwater.create_dataset(NewDataset(name="moments", fields=fields, record_key=("id",)))
    headwater.write_arrow(dataset, frame[frame["id"] > 1])
    odd = frame.set_index("id").assign(at=lambda each: each["at"] + pd.Timedelta(1, "ns"))
    refused = headwater.write_arrow(dataset, odd)
    service.work()
    (page,) = headwater.row_tables(dataset)
    assert page.to_arrow().select(["id", "at"]).to_pylist() == [{"id": 2, "at": times[1].to_pydatetime()}]
    error = headwater.get_job(refused).error
    assert error is not None
    assert (
        "got 2026-11-21T10:00:00.000001001, which has more than 6 fractional digits; round it"
        in error["detail"]
    )


def test_pages_are_arrow_data(service, headwater, orders) -> None:
    headwater.write_arrow(orders, pl.DataFrame(ROWS))
    service.work()
    (page,) = headwater.row_tables(orders)
    assert page.to_polars().sort("id").rows() == [(1, "a"), (2, None)]
    (changes,) = headwater.change_tables(orders)
    assert list(changes.to_pandas()["op"]) == [0, 0]


@pytest.mark.parametrize(
    ("package", "method", "extra"),
    [
        ("pyarrow", "to_arrow", "arrow"),
        ("pandas", "to_pandas", "pandas"),
        ("polars", "to_polars", "polars"),
        ("duckdb", "to_duckdb", "duckdb"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, package: str, method: str, extra: str) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf"pip install {package}.*the extra {extra} ") as missing:
        getattr(DATA[0], method)()
    assert missing.value.name == package


def test_import_of_the_client_loads_no_arrow_library() -> None:
    program = (
        "import sys, headwater_client; print(*{'pyarrow', 'pandas', 'polars', 'duckdb'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ""
