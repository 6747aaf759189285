"""Rows of file groups by number: whatever range is requested, in whatever order, with however little memory."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_range import MergedRange
from app.infra.files.slices.table_reader import TableReader
from app.infra.files.storage import LocalStorage
from app.kernel.format.file_group import FileKind
from app.kernel.format.rows.meta_columns import FILE_NAME_FIELD, META_FIELDS, PARTITION_FIELD, VERSION_COLUMN
from tests.support.versioned_tables import VersionedTable, comparable, written_versioned_table

KINDS = ("merge_on_read full", "merge_on_read none", "key_dynamic with logs", "unaware with deletion vectors")


@pytest.fixture(scope="module", params=KINDS)
def versioned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> VersionedTable:
    return written_versioned_table(LocalStorage(tmp_path_factory.mktemp("storage")), request.param)


def groups(versioned: VersionedTable) -> list[list]:
    """The files of each group at the last version that was not compacted."""
    found: dict[str, list] = {}
    for file in sorted(versioned.files[-2], key=lambda file: (file.added_version, file.path)):
        found.setdefault(file.file_group, []).append(file)
    return list(found.values())


def reader(
    versioned: VersionedTable, memory_bytes: int = 2**26, scratch: Path | None = None, **limits: int
) -> TableReader:
    storage = versioned.table.storage
    return TableReader(
        storage, ParquetReader(storage), MemoryBudget(bytes_max=memory_bytes, scratch=scratch), **limits
    )


def schema_of(versioned: VersionedTable) -> pa.Schema:
    return pa.schema(
        [*versioned.table.dataset.schema.to_arrow(), *META_FIELDS, PARTITION_FIELD, FILE_NAME_FIELD]
    )


@pytest.mark.parametrize("cache_bytes", [1, 400, 2**26])
def test_row_range_equals_that_part_of_the_group(versioned: VersionedTable, cache_bytes: int) -> None:
    tables, schema = reader(versioned, cache_bytes=cache_bytes), schema_of(versioned)
    chance = random.Random(2)
    for files in groups(versioned):
        whole = reader(versioned).read_group(versioned.table.dataset, files, schema, 0, 1_000).to_pylist()
        for _ in range(12):
            first, rows = chance.randint(0, len(whole) + 2), chance.randint(0, 6)
            part = tables.read_group(versioned.table.dataset, files, schema, first, rows)
            assert part.to_pylist() == whole[first : first + rows]
            assert part.schema.equals(schema)


def test_groups_join_to_the_table(versioned: VersionedTable) -> None:
    tables, schema = reader(versioned), versioned.table.dataset.schema.to_arrow()
    found = [
        row
        for files in groups(versioned)
        for row in tables.read_group(versioned.table.dataset, files, schema, 0, 1_000).to_pylist()
    ]
    assert comparable(found) == comparable(versioned.rows[-2])


def test_group_beyond_memory_is_merged_through_a_folder(versioned: VersionedTable, tmp_path: Path) -> None:
    schema = schema_of(versioned)
    for files in groups(versioned):
        plenty = reader(versioned).read_group(versioned.table.dataset, files, schema, 0, 1_000).to_pylist()
        little = reader(versioned, 64, tmp_path / "spill").read_group(
            versioned.table.dataset, files, schema, 0, 1_000
        )
        assert comparable(little.to_pylist()) == comparable(plenty)


def test_only_rows_of_base_files_have_a_file_name(versioned: VersionedTable) -> None:
    schema = schema_of(versioned)
    for files in groups(versioned):
        table = reader(versioned).read_group(versioned.table.dataset, files, schema, 0, 1_000)
        written = {file.path.rsplit("/", 1)[1]: file for file in files if file.kind is FileKind.BASE}
        for row in table.to_pylist():
            name = row[FILE_NAME_FIELD.name]
            assert row[PARTITION_FIELD.name] == f"day={row['day']}"
            if name is None:
                assert any(file.kind is FileKind.LOG for file in files)
            else:
                assert row[VERSION_COLUMN] <= written[name].written_version


def test_range_of_merged_rows_has_what_it_has_room_for() -> None:
    rows = pa.table({"n": pa.array(range(100), pa.int64())})
    whole = MergedRange(first=0, rows=rows, at_end=True)
    assert whole.has(40, 1_000, 2**30)
    assert whole.rows_from(40, 3).column("n").to_pylist() == [40, 41, 42]
    part = MergedRange(first=50, rows=rows, at_end=False)
    assert not part.has(49, 1, 2**30)
    assert not part.has(149, 2, 2**30)
    assert part.has(149, 1, 2**30)
    assert part.rows_from(149, 1).column("n").to_pylist() == [99]
    end = MergedRange(first=150, rows=rows, at_end=True)
    assert not end.has(50, 1, 2**30)
    assert end.has(250, 5, 2**30)
    assert end.rows_from(250, 5).num_rows == 0
