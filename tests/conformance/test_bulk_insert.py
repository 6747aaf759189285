"""Bulk inserts: rows stand in the order of their keys, in files of the target size, and nothing is looked up."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.slices import slice_merge
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Write
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources


@pytest.mark.parametrize("table_type", TableType)
def test_bulk_insert_sorts_and_sizes_files_without_key_lookups(
    tmp_path: Path, table_type: TableType, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = [CreateField(name="id", type="string"), CreateField(name="text", type="string")]
    dataset = define_dataset(
        CreateDataset(
            name="t",
            schema=CreateSchema(fields=fields),
            record_key=["id"],
            table_type=table_type,
            bucket=CreateBucket(count=1),
            target_bytes=64 * 1024,
        )
    )
    handle = MergeHandle(TaskResources.on(LocalStorage(tmp_path), MemoryBudget(bytes_max=2**28)))
    table = LakeTable(
        storage=LocalStorage(tmp_path),
        dataset=dataset,
        run=lambda tasks: [handle.run(task) for task in tasks],
    )
    lookups: list[int] = []
    distinct = slice_merge._distinct
    monkeypatch.setattr(
        slice_merge, "_distinct", lambda hashes: lookups.append(len(hashes)) or distinct(hashes)
    )
    dice = random.Random(1)
    rows: list[dict[str, Any]] = [
        {"id": f"{number:06}", "text": dice.randbytes(60).hex()} for number in range(4_000)
    ]
    dice.shuffle(rows)
    table.write(Write(operation=Operation.BULK_INSERT, rows=rows))
    stored = [
        table.reader.open(file).read(columns=["id"]).column("id").to_pylist()
        for file in sorted(table.files.values(), key=lambda file: file.statistics["1"].minimum)
    ]
    assert len(stored) > 1
    assert [each for file in stored for each in file] == sorted(row["id"] for row in rows)
    assert lookups == [0]
    table.write(Write(operation=Operation.BULK_INSERT, rows=[{"id": "new", "text": None}]))
    assert lookups == [0, 1]
    [conflict] = table.write(Write(operation=Operation.BULK_INSERT, rows=rows[:1])).conflicts
    assert conflict.keys == ({"id": rows[0]["id"]},)
