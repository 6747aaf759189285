"""Data frames of pandas that are written and read: its types of columns, with and without values that are missing.

`test_pandas_releases` runs these with another release of pandas, too.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pandas as pd
import pytest

from headwater_client import Dataset, Headwater, NewDataset, NewField
from tests.support.service import Service

AT = datetime(2026, 11, 21, 10, 30, 15, 123456, UTC)
READINGS = {
    "sensor": ["a", "b"],
    "at": [AT, None],
    "local": [AT.replace(tzinfo=None), None],
    "day": [date(2026, 11, 21), None],
    "price": [Decimal("12.50"), None],
    "raw": [b"\x00\xff", None],
    "value": [1.5, None],
}


def written(service: Service, headwater: Headwater, dataset: Dataset, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the dataset in the order of their first column, after the frame was written."""
    headwater.write_arrow(dataset, frame)
    service.work()
    (page,) = headwater.row_tables(dataset)
    return page.to_pandas().sort_values(frame.columns[0], ignore_index=True)


def values_of(frame: pd.DataFrame, column: str) -> list[object]:
    """The values of a column, with None for those that are missing."""
    return [None if pd.isna(value) else value for value in frame[column]]


def test_frames_are_read_as_they_were_written(service, headwater, readings) -> None:
    frame = pd.DataFrame(READINGS).astype({"at": "datetime64[us, UTC]", "local": "datetime64[us]"})
    read = written(service, headwater, readings, frame)
    assert {name: values_of(read, name) for name in READINGS} == READINGS
    assert [str(read[name].dtype) for name in ("at", "local", "value")] == [
        "datetime64[us, UTC]",
        "datetime64[us]",
        "float64",
    ]
    assert read["sensor"].dtype == frame["sensor"].dtype


def test_a_frame_that_was_read_is_written_back(service, headwater, readings) -> None:
    frame = pd.DataFrame(READINGS).astype({"at": "datetime64[us, UTC]", "local": "datetime64[us]"})
    read = written(service, headwater, readings, frame)
    again = written(service, headwater, readings, read.assign(value=[2.5, 3.5]))
    assert {name: values_of(again, name) for name in READINGS} == {**READINGS, "value": [2.5, 3.5]}


@pytest.mark.parametrize(
    ("type_", "dtype", "values"),
    [
        ("int64", "int64", [1, 2]),
        ("int64", "Int64", [1, None]),
        ("int32", "Int32", [1, None]),
        ("int64", "int64[pyarrow]", [2**62, None]),
        ("double", "Float64", [1.5, None]),
        ("float", "float32", [1.5, 2.5]),
        ("boolean", "bool", [True, False]),
        ("boolean", "boolean", [True, None]),
        ("string", "object", ["a", None]),
        ("string", "string", ["a", None]),
        ("string", "string[pyarrow]", ["a", None]),
        ("string", "category", ["a", None]),
    ],
)
def test_columns_of_each_type_of_pandas_are_written(
    service, headwater, type_: str, dtype: str, values: list[object]
) -> None:
    fields = (NewField(name="id", type="int64"), NewField(name="x", type=type_))
    dataset = headwater.create_dataset(NewDataset(name="typed", fields=fields, record_key=("id",)))
    frame = pd.DataFrame({"id": [1, 2], "x": pd.Series(values, dtype=dtype)})
    assert values_of(written(service, headwater, dataset, frame), "x") == values


def test_pages_without_rows_have_their_columns(headwater, readings) -> None:
    (rows,) = headwater.row_tables(readings)
    assert list(rows.to_pandas().columns) == list(READINGS)
    (changes,) = headwater.change_tables(readings)
    assert changes.to_pandas().empty
    assert list(changes.to_pandas().columns)[-len(READINGS) :] == list(READINGS)
