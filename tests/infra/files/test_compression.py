"""The files of a table are compressed as its definition says, also after the definition has changed."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.file_format import FileCompression
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.merged_feed import MergedFeed
from workers.engine.task_files import TaskResources

KINDS: dict[str, dict[str, Any]] = {
    "copy_on_write": {"record_key": ["id"], "table_type": "copy_on_write"},
    "deletion vectors": {"record_key": ["id"], "target_bytes": 64 * 1024},
    "logs": {"record_key": ["id"], "changelog": {"producer": "input"}, "bucket": {"count": 1}},
    "no key": {},
}
FIELDS = [{"name": "id", "type": "int64"}, {"name": "note", "type": "string"}]
# Files of few rows are compressed with snappy, whatever the dataset says.
COUNT = 400


@pytest.fixture(params=KINDS)
def table(tmp_path: Path, request: pytest.FixtureRequest) -> LakeTable:
    """Without rows, compressed with lz4."""
    resources = TaskResources.on(LocalStorage(tmp_path), MemoryBudget(bytes_max=2**26))
    new = {"name": "t", "schema": {"fields": FIELDS}, "compression": "lz4", **KINDS[request.param]}
    definition = define_dataset(msgspec.convert(new, CreateDataset))
    return LakeTable(storage=resources.storage, dataset=definition, run=partial(merged, resources))


def rows(first: int, note: str) -> list[Row]:
    return [{"id": number, "note": f"{note} {number}"} for number in range(first, first + COUNT)]


def codecs(table: LakeTable, paths: set[str]) -> set[str]:
    """The codecs of the texts in these files."""
    groups = [pq.read_metadata(table.storage.root / path).row_group(0) for path in paths]
    columns = [group.column(at) for group in groups for at in range(group.num_columns)]
    # Numbers are always compressed for speed.
    assert {column.compression for column in columns if column.path_in_schema != "note"} == {"LZ4"}
    return {column.compression for column in columns if column.path_in_schema == "note"}


def paths(table: LakeTable) -> set[str]:
    """The files that the table has, and those of its feed."""
    return {*table.files, *(file.path for _, _, file in table.feed)}


def contents(table: LakeTable) -> list[Row]:
    return sorted(table.rows(), key=lambda row: row["id"])


def upsert(table: LakeTable, first: int, note: str) -> None:
    operation = Operation.UPSERT if table.dataset.keyed else Operation.INSERT
    table.write(Write(operation=operation, rows=rows(first, note)))


def test_new_files_are_compressed_as_the_dataset_says(table: LakeTable) -> None:
    upsert(table, 0, "first")
    before = paths(table)
    assert codecs(table, before) == {"LZ4"}
    table.dataset = msgspec.structs.replace(table.dataset, compression=FileCompression.ZSTD)
    upsert(table, COUNT // 2 if table.dataset.keyed else COUNT, "second")
    assert codecs(table, paths(table) - before) == {"ZSTD"}
    found = contents(table)
    table.compact()
    assert codecs(table, set(table.files)) == {"ZSTD"}
    assert contents(table) == found
    assert len(found) == (COUNT + COUNT // 2 if table.dataset.keyed else 2 * COUNT)


def test_merged_changelog_files_are_compressed_as_the_dataset_says(table: LakeTable) -> None:
    upsert(table, 0, "first")
    upsert(table, COUNT, "second")
    table.dataset = msgspec.structs.replace(table.dataset, compression=FileCompression.ZSTD)
    feed = MergedFeed(table=table)
    feed.merge(0, 2)
    [file] = feed.files()
    assert codecs(table, {file.file.path}) == {"ZSTD"}
