"""Statistics of files in actions."""

from __future__ import annotations

import json
from typing import Any

from app.kernel.delta.statistics import COLUMNS_MAX, StatisticsTexts
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.schema.schema import Field, Schema


def published(types: dict[str, str], columns: dict[str, ColumnStatistics], *, by_id: bool = False) -> Any:
    fields = [Field(id=number, name=name, type=kind) for number, (name, kind) in enumerate(types.items(), 1)]
    return json.loads(StatisticsTexts(Schema(id=1, fields=tuple(fields)), by_id=by_id).text(9, columns))


def test_columns_have_bounds_and_nulls_under_their_names() -> None:
    columns = {
        "1": ColumnStatistics(minimum=-3, maximum=8, null_count=0),
        "2": ColumnStatistics(minimum="a", maximum="ü", null_count=2),
        "3": ColumnStatistics(minimum="2026-01-01", maximum="2026-01-02", null_count=0),
    }
    types = {"n": "int64", "s": "string", "d": "date"}
    assert published(types, columns) == {
        "numRecords": 9,
        "minValues": {"n": -3, "s": "a", "d": "2026-01-01"},
        "maxValues": {"n": 8, "s": "ü", "d": "2026-01-02"},
        "nullCount": {"n": 0, "s": 2, "d": 0},
    }
    assert published(types, columns, by_id=True)["maxValues"] == {
        "col-1": 8, "col-2": "ü", "col-3": "2026-01-02",
    }  # fmt: skip


def test_column_has_all_of_its_statistics_or_none() -> None:
    columns = {
        "1": ColumnStatistics(minimum=1, maximum=2),
        "2": ColumnStatistics(minimum="a", null_count=0),
        "3": ColumnStatistics(null_count=9),
    }
    assert published({"a": "int32", "b": "string", "c": "int8"}, columns) == {"numRecords": 9}


def test_columns_whose_bounds_readers_round_have_none() -> None:
    whole = ColumnStatistics(minimum=1, maximum=2, null_count=0)
    types = {"a": "double", "b": "decimal(9, 2)", "c": "timestamp", "d": "boolean", "e": "list<int32>"}
    assert published(types, {str(at): whole for at in range(1, 6)}) == {"numRecords": 9}


def test_first_columns_have_statistics() -> None:
    whole = ColumnStatistics(minimum=1, maximum=2, null_count=0)
    types = {f"c{at}": "int32" for at in range(COLUMNS_MAX + 1)}
    file = published(types, {str(at): whole for at in range(1, COLUMNS_MAX + 2)})
    assert list(file["minValues"]) == list(types)[:COLUMNS_MAX]
