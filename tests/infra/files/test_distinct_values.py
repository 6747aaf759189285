"""Distinct values of columns: all types and kinds of tables against a count of all values; the error of estimates."""

from __future__ import annotations

import json
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.slices import distinct_values
from app.infra.files.slices.distinct_values import ColumnCounts, count_distinct, plan_sketches, sketch_columns
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.codecs.json.objects import to_objects
from app.kernel.format.file_group import FileKind
from app.kernel.format.operation import Operation
from tests.kernel.format.test_types_on_every_surface import EXAMPLES, table
from tests.support.lake_table import LakeTable, Write
from tests.support.versioned_tables import KINDS, kind_of, new_versioned_table, written_versioned_table

MEMORY = MemoryBudget(bytes_max=2**26)
_NESTED_MAPS = pa.list_(pa.map_(pa.int64(), pa.bool_()))


def counted(table: LakeTable) -> ColumnCounts:
    slices = SliceReader(table.reader, VectorReader(table.storage))
    tasks = plan_sketches(table.dataset, table.files.values())
    parts = [sketch_columns(task, slices, MEMORY) for task in tasks]
    return count_distinct(parts, len(table.dataset.schema.fields))


def sketched(*columns: pa.Array) -> int:
    """The distinct values of a column whose rows are in several files."""
    sketch = distinct_values._EMPTY
    for column in columns:
        sketch = distinct_values._with_values(sketch, pa.chunked_array([column, column]))
    return round(distinct_values._estimate(sketch))


@pytest.mark.parametrize("text", EXAMPLES)
def test_values_of_each_type_are_counted_also_in_nested_ones(text: str) -> None:
    rows = table(text)
    for name in rows.column_names:
        column = rows.column(name).combine_chunks()
        expected = {json.dumps(value) for value in to_objects(column) if value is not None}
        assert sketched(column, column.slice(1)) == len(expected), name


@pytest.mark.parametrize(
    ("values", "distinct"),
    [
        (pa.array([0.0, -0.0, 0.0]), 2),
        (pa.array([float("nan"), float("nan"), 1.0]), 2),
        (pa.array([[0.0], [-0.0], [0.0], None, [], [None]]), 4),
        (pa.array(["", None, ""]), 1),
        (pa.array([{"a": None}, None, {"a": 1}, {"a": None}]), 2),
        (pa.array([[("k", 1)], [("k", 1)], [("k", None)]], pa.map_(pa.string(), pa.int64())), 2),
        (pa.array([[("k", 1), ("l", 2)], [("l", 2), ("k", 1)]], pa.map_(pa.string(), pa.int64())), 1),
        (pa.array([[[(2, True), (10, None)]], [[(10, None), (2, True)]], [None]], _NESTED_MAPS), 2),
        (pa.array(["a", "b", "a", None]).dictionary_encode().slice(1), 2),
        (pa.array([None, None], pa.int32()), 0),
        (pa.array([], pa.list_(pa.int8())), 0),
    ],
    ids=[
        "zeros",
        "NaN",
        "lists",
        "empty text",
        "structs",
        "maps",
        "order",
        "within",
        "dictionary",
        "nulls",
        "nothing",
    ],
)
def test_values_are_equal_as_their_texts_are(values: pa.Array, distinct: int) -> None:
    assert sketched(values) == distinct


@pytest.mark.parametrize("kind", KINDS)
def test_distinct_values_are_those_that_readers_see(tmp_path: Path, kind: str) -> None:
    """With logs, deletion vectors, postponed writes, halved buckets: at each version."""
    versioned = written_versioned_table(LocalStorage(tmp_path), kind, compacted=False)
    table, rows = versioned.table, versioned.rows[-1]
    expected = tuple(
        len({row[name] for row in rows if row[name] is not None}) for name in table.dataset.schema.names()
    )
    assert counted(table) == ColumnCounts(rows=len(rows), distinct=expected)


def test_column_is_counted_by_its_id(tmp_path: Path) -> None:
    """A renamed column keeps its values, a column that was added has none in earlier files."""
    versioned = new_versioned_table(LocalStorage(tmp_path), kind_of("unaware"))
    table = versioned.table
    rows: list[dict[str, Any]] = [
        {"id": number, "day": "2026-11-21", "n": number % 3, "note": None} for number in range(9)
    ]
    table.write(Write(operation=Operation.INSERT, rows=rows))
    schema = table.dataset.schema
    fields = tuple(
        structs.replace(field, name="number") if field.name == "n" else field for field in schema.fields
    )
    added = structs.replace(fields[-1], id=99, name="added", nullable=True)
    renamed = structs.replace(schema, id=2, fields=(*fields, added))
    table.dataset = structs.replace(table.dataset, schema=renamed)
    found = dict(zip(renamed.names(), counted(table).distinct, strict=True))
    assert (found["number"], found["id"], found["note"], found["added"]) == (3, 9, 0, 0)


def test_empty_table_has_no_values(tmp_path: Path) -> None:
    table = new_versioned_table(LocalStorage(tmp_path), kind_of("unaware")).table
    assert plan_sketches(table.dataset, []) == []
    assert counted(table) == ColumnCounts(rows=0, distinct=(0,) * len(table.dataset.schema.fields))


@pytest.mark.parametrize("number", [3_000, 30_000, 300_000])
def test_estimate_is_within_three_standard_errors(number: int) -> None:
    parts = [pa.array(range(start, start + number // 2)) for start in (0, number // 4, number // 2)]
    assert abs(sketched(*parts) - number) <= 0.066 * number


def test_up_to_two_thousand_values_are_counted_exactly() -> None:
    assert sketched(pa.array(range(1_500)), pa.array(range(1_000, 2_000))) == 2_000


def test_order_of_sketches_does_not_matter() -> None:
    parts = [pa.array(range(start, start + 5_000)) for start in (0, 3_000, 20_000)]
    assert len({sketched(*order) for order in permutations(parts)}) == 1


def test_wide_table_has_few_large_tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All results together have 64 MiB at most: 16 KiB for each column of each task."""
    versioned = written_versioned_table(LocalStorage(tmp_path), "unaware", compacted=False)
    table = versioned.table
    monkeypatch.setattr(distinct_values, "_TASK_BYTES", 1)
    files = [file for file in table.files.values() if file.kind is FileKind.BASE]
    live = [structs.replace(file, path=f"{file.path}-{number}") for number in range(20) for file in files]
    assert len(plan_sketches(table.dataset, live)) == len(live)
    schema = table.dataset.schema
    wide = [
        structs.replace(schema.fields[-1], id=number, name=f"c{number}", nullable=True)
        for number in range(2_000)
    ]
    dataset = structs.replace(table.dataset, schema=structs.replace(schema, fields=tuple(wide)))
    tasks = plan_sketches(dataset, live)
    assert 1 < len(tasks) <= 64 * 1024 // (16 * 2_000)
    planned = [file.path for task in tasks for group in task.groups for file in group]
    assert sorted(planned) == sorted(file.path for file in live)
