"""Stages the rows of an earlier version, so that a write can restore the table to it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import Storage
from app.kernel.commit.restore_plan import Restaged, RestageTask
from app.kernel.format.operation import Operation
from app.kernel.format.schema.schema_projection import project_rows


def restage(task: RestageTask, storage: Storage, slices: SliceReader, memory: MemoryBudget) -> Restaged:
    """Reads the groups as at that version, block by block. Raises CorruptFile, StorageFull."""
    staged_file = StagedFileStore(storage).write(
        task.now, Operation.SNAPSHOT, _rows(task, slices, memory), task.path, durable=False
    )
    return Restaged(file=staged_file)


def _rows(task: RestageTask, slices: SliceReader, memory: MemoryBudget) -> Iterator[pa.Table]:
    names, target = task.then.schema.names(), task.now.schema.to_arrow()
    for files in task.groups:
        # Logs are merged under the schema of that time: under a wider one, a sum may have another result.
        for block in merged_blocks(slices, task.then, files, memory):
            yield project_rows(block.rows.select(names), target)
