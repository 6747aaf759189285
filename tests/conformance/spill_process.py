"""Merges a bucket that is larger than its process may be, and says how large the process became.

    python -m tests.conformance.spill_process FOLDER HISTORY ROWS MEMORY_BYTES HEAP_BYTES

Rows come in writes of some each. With HEAP_BYTES the process may have no more memory of its own (RLIMIT_DATA) from
the moment on that everything is loaded and the first write is done.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import psutil
import pyarrow as pa

import app.kernel.arrow  # noqa: F401
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.operation import Operation
from app.kernel.format.rows.meta_columns import META_NAMES
from app.kernel.format.rows.staged import StagedFile
from tests.support.lake_table import COMPACT, LakeTable, Write
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources

TEXT_BYTES: Final = 400
STEP_ROWS: Final = 10_000
# By name: table type, producer, and the operation of the writes behind the first.
HISTORIES: Final = {
    "copy_on_write upsert": (TableType.COPY_ON_WRITE, ChangelogProducer.FULL, Operation.UPSERT),
    "compaction of logs": (TableType.MERGE_ON_READ, ChangelogProducer.INPUT, Operation.UPSERT),
    "snapshot": (TableType.COPY_ON_WRITE, ChangelogProducer.FULL, Operation.SNAPSHOT),
}


def definition(table_type: TableType, producer: ChangelogProducer) -> DatasetDefinition:
    fields = [CreateField(name="id", type="int64"), CreateField(name="round", type="int32")]
    return define_dataset(
        CreateDataset(
            name="t",
            schema=CreateSchema(fields=[*fields, CreateField(name="text", type="string")]),
            record_key=["id"],
            table_type=table_type,
            bucket=CreateBucket(count=1),
            changelog=CreateChangelog(producer=producer),
            target_bytes=8 * 1024 * 1024,
        )
    )


def tables(dataset: DatasetDefinition, rows: int, number: int) -> Iterator[pa.Table]:
    """Rows in no order, some at a time: the same keys every time, other texts."""
    one = np.random.default_rng(number)
    keys = np.random.default_rng(7).permutation(rows)
    for start in range(0, rows, STEP_ROWS):
        part = keys[start : start + STEP_ROWS]
        texts = one.bytes(len(part) * TEXT_BYTES // 2).hex()
        yield pa.table(
            {
                "id": part,
                "round": np.full(len(part), number, dtype=np.int32),
                "text": [texts[at * TEXT_BYTES : (at + 1) * TEXT_BYTES] for at in range(len(part))],
            }
        ).cast(pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()]))


class StreamedTable(LakeTable):
    """A table whose writes are staged step by step, since they are too large for memory."""

    rows_of_writes: int = 0
    number: int = 0

    def _staged(self, number: int, write: Write) -> list[StagedFile]:
        path = f"{self.name}/staged/{self.attempts}.arrow"
        store = StagedFileStore(self.storage)
        staged = store.write(
            self.dataset, write.operation, tables(self.dataset, self.rows_of_writes, self.number), path
        )
        return [] if staged is None else [staged]


def main(folder: str, history: str, rows: str, memory_bytes: str, heap_bytes: str) -> None:
    pa.set_cpu_count(1)
    # Pools that keep what they freed would count as memory in use.
    pa.set_memory_pool(pa.system_memory_pool())
    table_type, producer, operation = HISTORIES[history]
    storage = LocalStorage(Path(folder))
    memory = MemoryBudget(bytes_max=int(memory_bytes), scratch=Path(folder) / "scratch")
    handle = MergeHandle(TaskResources.on(storage, memory))
    table = StreamedTable(
        storage=storage,
        dataset=definition(table_type, producer),
        run=lambda tasks: [handle.run(task) for task in tasks],
    )
    process = psutil.Process()
    # All modules are loaded and all pools made once a little was written.
    warm = StreamedTable(storage=storage, dataset=table.dataset, run=table.run)
    for warm.number, warm.rows_of_writes in ((0, 10), (1, 10)):
        warm.write(Write(operation=operation))
    warm.compact()
    before = process.memory_info().data
    if int(heap_bytes):
        resource.setrlimit(resource.RLIMIT_DATA, (before + int(heap_bytes),) * 2)
    table.rows_of_writes = int(rows)
    table.write(Write(operation=Operation.UPSERT))
    table.number = 1
    table.write(Write(operation=operation))
    table.write(COMPACT)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak": peak, "before": before, **merged_counts(table, memory)}))


def merged_counts(table: LakeTable, memory: MemoryBudget) -> dict[str, int]:
    """What the table holds in the end, counted block by block."""
    reader = SliceReader(
        table.reader, MergeHandle(TaskResources.on(table.storage, memory)).resources.slices.vectors
    )
    rows = rounds = keys = 0
    for files in table.groups().values():
        for block in merged_blocks(reader, table.dataset, files, memory):
            found = block.rows.drop_columns(list(META_NAMES))
            rows += found.num_rows
            rounds += int(found.column("round").to_numpy().sum())
            keys += int(found.column("id").to_numpy().sum())
    return {"rows": rows, "rounds": rounds, "keys": keys, "files": len(table.files)}


if __name__ == "__main__":
    main(*sys.argv[1:])
