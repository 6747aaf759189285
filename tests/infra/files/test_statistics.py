"""Which rows of a file the bounds of its row groups rule out: never one that matches."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.infra.files.statistics import row_ranges
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.schema_projection import project_rows
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from tests.kernel.sql.conditions.columns import SCHEMA, table_of
from tests.kernel.sql.conditions.test_prune import cases
from tests.support.examples import a_third_of


def stored(table: pa.Table, row_group_rows: int) -> pq.ParquetFile:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=row_group_rows)
    return pq.ParquetFile(file)


def covered(parts: list[tuple[int, int]], rows: int) -> np.ndarray:
    mask = np.zeros(rows, dtype=bool)
    for first, end in parts:
        assert 0 <= first < end <= rows
        mask[first:end] = True
    assert parts == sorted(parts)
    return mask


@settings(max_examples=a_third_of(100), deadline=None)
@given(case=cases(), row_group_rows=st.integers(1, 4), data=st.data())
def test_every_matching_row_is_in_a_selected_row_range(
    case: Any, row_group_rows: int, data: st.DataObject
) -> None:
    written, found = case
    selection = parse_filter(written.text, SCHEMA)
    file = stored(table_of(found), row_group_rows)
    first = data.draw(st.integers(0, len(found)))
    rows = data.draw(st.integers(0, len(found) - first))
    selected_rows = covered(list(row_ranges(file, selection, SCHEMA, first, rows)), len(found))
    selected = np.array([written.holds(row) is True for row in found])
    within = np.zeros(len(found), dtype=bool)
    within[first : first + rows] = True
    assert not (selected & within & ~selected_rows).any()
    assert not (selected_rows & ~within).any()


WIDE = Schema(
    id=2,
    fields=(
        Field(id=1, name="d", type="double"),
        Field(id=2, name="n", type="int64"),
        Field(id=3, name="added", type="string"),
    ),
)
OLD = Schema(id=1, fields=(Field(id=1, name="d", type="float"), Field(id=2, name="m", type="int64")))


@pytest.mark.parametrize("where", ["d = 0.1", "d > 0.1", "d <= 0.1", "NOT (d > 0.1)", "d IN (0.1, 5)"])
@pytest.mark.parametrize(("written", "requested"), [(OLD, WIDE), (WIDE, OLD)])
def test_bounds_of_another_type_exclude_nothing(written: Schema, requested: Schema, where: str) -> None:
    """0.1 is another number as a float than as a double, so bounds of one say nothing of the other."""
    values = {field.name: [0] * 4 for field in written.fields if field.id == 2}
    columns = {"d": [0.1, 0.1, 7.0, None], **values}
    kinds = pa.schema([field.to_arrow() for field in written.fields if field.id < 3])
    table = pa.table(columns, schema=kinds)
    selection = parse_filter(where, requested)
    selected_rows = covered(list(row_ranges(stored(table, 1), selection, requested, 0, 4)), 4)
    projected = project_rows(table, pa.schema([field.with_nullable(True) for field in requested.to_arrow()]))
    assert not (matches(selection, projected) & ~selected_rows).any()


def test_columns_are_matched_by_id_and_absent_ones_are_null() -> None:
    table = pa.table({"d": [1.0] * 6, "m": [1, 2, 3, 4, 5, 6]}, schema=OLD.to_arrow())
    file = stored(table, 2)

    def parts(where: str, first: int = 0, rows: int = 6) -> list[tuple[int, int]]:
        return list(row_ranges(file, parse_filter(where, WIDE), WIDE, first, rows))

    assert parts("n = 4") == [(2, 4)]
    assert parts("n = 1 OR n = 6") == [(0, 2), (4, 6)]
    assert parts("n > 2", 3, 2) == [(3, 4), (4, 5)]
    assert parts("added = 'x'") == []
    assert parts("added IS NULL") == [(0, 2), (2, 4), (4, 6)]
    assert parts("n = 4 AND added IS NOT NULL") == []
