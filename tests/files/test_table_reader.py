"""Rows of file groups by number: whatever stretch is asked for, in whatever order, with however little memory."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from app.files.parquet_file import ParquetReader
from app.files.slices.merged_rows_cache import CachedRows, MergedRowsCache
from app.files.slices.slice_merge import MemoryBudget
from app.files.slices.table_reader import TableReader
from app.files.storage import LocalStorage
from app.format.file_group import FileKind
from app.format.rows.meta_columns import FILE_NAME_FIELD, META_FIELDS, PARTITION_FIELD, VERSION_COLUMN
from tests.support.past_tables import Past, comparable, written_past

KINDS = ("merge_on_read full", "merge_on_read none", "key_dynamic with logs", "unaware with deletion vectors")


@pytest.fixture(scope="module", params=KINDS)
def past(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Past:
    return written_past(LocalStorage(tmp_path_factory.mktemp("storage")), request.param)


def groups(past: Past) -> list[list]:
    """The files of each group at the last version that was not compacted."""
    found: dict[str, list] = {}
    for file in sorted(past.files[-2], key=lambda file: (file.added_version, file.path)):
        found.setdefault(file.file_group, []).append(file)
    return list(found.values())


def reader(past: Past, memory_bytes: int = 2**26, scratch: Path | None = None, **limits: int) -> TableReader:
    storage = past.table.storage
    return TableReader(
        storage, ParquetReader(storage), MemoryBudget(bytes_max=memory_bytes, scratch=scratch), **limits
    )


def schema_of(past: Past) -> pa.Schema:
    return pa.schema([*past.table.dataset.schema.to_arrow(), *META_FIELDS, PARTITION_FIELD, FILE_NAME_FIELD])


@pytest.mark.parametrize("cache_bytes", [1, 400, 2**26])
def test_any_stretch_is_that_part_of_the_whole(past: Past, cache_bytes: int) -> None:
    tables, schema = reader(past, cache_bytes=cache_bytes), schema_of(past)
    chance = random.Random(2)
    for files in groups(past):
        whole = reader(past).read_group(past.table.dataset, files, schema, 0, 1_000).to_pylist()
        for _ in range(12):
            first, rows = chance.randint(0, len(whole) + 2), chance.randint(0, 6)
            part = tables.read_group(past.table.dataset, files, schema, first, rows)
            assert part.to_pylist() == whole[first : first + rows]
            assert part.schema.equals(schema)


def test_all_groups_together_are_the_table(past: Past) -> None:
    tables, schema = reader(past), past.table.dataset.schema.to_arrow()
    found = [
        row
        for files in groups(past)
        for row in tables.read_group(past.table.dataset, files, schema, 0, 1_000).to_pylist()
    ]
    assert comparable(found) == comparable(past.rows[-2])


def test_what_does_not_fit_memory_is_merged_all_the_same(past: Past, tmp_path: Path) -> None:
    schema = schema_of(past)
    for files in groups(past):
        plenty = reader(past).read_group(past.table.dataset, files, schema, 0, 1_000).to_pylist()
        little = reader(past, 64, tmp_path / "spill").read_group(past.table.dataset, files, schema, 0, 1_000)
        assert comparable(little.to_pylist()) == comparable(plenty)


def test_only_rows_of_base_files_have_a_file_name(past: Past) -> None:
    schema = schema_of(past)
    for files in groups(past):
        table = reader(past).read_group(past.table.dataset, files, schema, 0, 1_000)
        written = {file.path.rsplit("/", 1)[1]: file for file in files if file.kind is FileKind.BASE}
        for row in table.to_pylist():
            name = row[FILE_NAME_FIELD.name]
            assert row[PARTITION_FIELD.name] == f"day={row['day']}"
            if name is None:
                assert any(file.kind is FileKind.LOG for file in files)
            else:
                assert row[VERSION_COLUMN] <= written[name].written_version


def test_one_stretch_of_each_group_is_kept_and_the_last_in_any_case() -> None:
    rows = pa.table({"n": pa.array(range(100), pa.int64())})
    kept = MergedRowsCache(rows.nbytes + 100)
    kept.put("a", CachedRows(first=0, rows=rows, ended=True))
    assert kept.find("a", 40, 1_000).rows_from(40, 3).column("n").to_pylist() == [40, 41, 42]
    kept.put("b", CachedRows(first=50, rows=rows, ended=False))
    assert kept.find("a", 0, 1) is None
    assert kept.find("b", 49, 1) is None
    assert kept.find("b", 149, 2) is None
    assert kept.find("b", 149, 1).rows_from(149, 1).column("n").to_pylist() == [99]
    kept.put("b", CachedRows(first=150, rows=rows, ended=True))
    assert kept.find("b", 50, 1) is None
    assert kept.find("b", 250, 5).rows_from(250, 5).num_rows == 0
