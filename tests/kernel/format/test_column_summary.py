"""Bounds and nulls of a whole table are those of its rows, as far as its files show."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.format.index.column_summary import ColumnSummary, FileStatistics, summarize_columns
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import parse_type

SCHEMAS = {
    1: Schema(id=1, fields=(Field(id=1, name="n", type="int64"),)),
    2: Schema(
        id=2, fields=(Field(id=1, name="n", type="int64"), Field(id=2, name="late", type="decimal(6,2)"))
    ),
}


def of_values(values: list[Any], type_: str = "int64") -> ColumnStatistics:
    present = [value for value in values if value is not None]
    return ColumnStatistics(
        minimum=stored_bound(min(present, default=None), parse_type(type_)),
        maximum=stored_bound(max(present, default=None), parse_type(type_)),
        null_count=len(values) - len(present),
    )


def summary(field: Field, *files: FileStatistics) -> ColumnSummary:
    [found] = summarize_columns([field], SCHEMAS, files)
    return found


def file(rows: int, known: ColumnStatistics | None, schema_id: int = 1) -> FileStatistics:
    return FileStatistics(
        row_count=rows, schema_id=schema_id, statistics={} if known is None else {"1": known}
    )


@given(st.lists(st.tuples(st.lists(st.none() | st.integers(-9, 9), min_size=1), st.booleans()), max_size=5))
def test_summary_of_files_equals_that_of_their_rows(files: list[tuple[list[int | None], bool]]) -> None:
    found = summary(
        SCHEMAS[1].fields[0],
        *(
            file(len(values), of_values(values) if has_statistics else None)
            for values, has_statistics in files
        ),
    )
    if all(has_statistics for _, has_statistics in files):
        whole = of_values([value for values, _ in files for value in values])
        assert (found.minimum, found.maximum, found.null_count) == (
            whole.minimum,
            whole.maximum,
            whole.null_count,
        )
    else:
        assert (found.minimum, found.maximum, found.null_count) == (None, None, None)


@pytest.mark.parametrize(
    ("type_", "low", "high"),
    [
        ("decimal(6,2)", decimal.Decimal("9.50"), decimal.Decimal("10.25")),
        ("timestamp", dt.datetime(999, 1, 1, tzinfo=dt.UTC), dt.datetime(2026, 1, 1, tzinfo=dt.UTC)),
        ("date", dt.date(2025, 12, 31), dt.date(2026, 1, 1)),
        ("binary", b"\x01\xff", b"\x02"),
        ("string", "Z", "a"),
        ("double", -1.5, 2.0),
    ],
)
def test_bounds_are_compared_in_the_order_of_their_type(type_: str, low: Any, high: Any) -> None:
    """Not as the texts that they are stored as."""
    field = Field(id=1, name="n", type=type_)
    found = summary(field, file(1, of_values([high], type_)), file(1, of_values([low], type_)))
    assert (found.minimum, found.maximum) == (
        stored_bound(low, parse_type(type_)),
        stored_bound(high, parse_type(type_)),
    )


def test_rows_older_than_a_column_count_as_nulls() -> None:
    late = FileStatistics(
        row_count=2, schema_id=2, statistics={"2": of_values([decimal.Decimal("1.00"), None])}
    )
    found = summary(SCHEMAS[2].fields[1], file(3, of_values([1, 2, 3])), late)
    assert found == ColumnSummary(name="late", minimum="1.00", maximum="1.00", null_count=4)


def test_bound_above_the_length_limit_is_omitted() -> None:
    field = Field(id=1, name="n", type="string")
    found = summary(field, file(1, of_values(["a"])), file(2, of_values(["b", "x" * 100])))
    assert (found.minimum, found.maximum, found.null_count) == ("a", None, 0)
