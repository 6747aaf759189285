"""Stages the rows of an earlier version, so that a write can restore the table to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from app.infra.files.data_sink import DataSink
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.slices.tombstone_set import TombstoneSet
from app.infra.files.staged_file import StagedFileStore
from app.infra.files.storage import Storage
from app.infra.identifiers import random_hex
from app.kernel.commit.restore_plan import Restaged, RestageTask
from app.kernel.format.file_group import DataFile, FileKind, IndexKind, bucket_slot
from app.kernel.format.operation import Operation
from app.kernel.format.paths import written_path
from app.kernel.format.rows.placement import Placement
from app.kernel.format.rows.tombstones import tombstone_schema
from app.kernel.format.schema.schema_projection import project_rows


def restage(task: RestageTask, storage: Storage, slices: SliceReader, memory: MemoryBudget) -> Restaged:
    """Reads the groups as at that version, block by block. Raises CorruptFile, StorageFull."""
    tombstones: list[DataFile] = []
    staged_file = StagedFileStore(storage).write(
        task.now,
        Operation.SNAPSHOT,
        _rows(task, storage, slices, memory, tombstones),
        task.path,
        durable=False,
    )
    return Restaged(file=staged_file, tombstones=tuple(tombstones))


def _rows(
    task: RestageTask,
    storage: Storage,
    slices: SliceReader,
    memory: MemoryBudget,
    tombstones: list[DataFile],
) -> Iterator[pa.Table]:
    """The rows of the groups. The files of the tombstones that logs make are added to `tombstones`."""
    names, target = task.then.schema.names(), task.now.schema.to_arrow()
    for files in task.groups:
        group_tombstones = TombstoneSet.read(slices, task.then, files)
        # Logs are merged under the schema of that time: under a wider one, a sum may have another result.
        for block in merged_blocks(slices, task.then, files, memory, group_tombstones):
            yield project_rows(block.rows.select(names), target)
        if any(file.kind is FileKind.LOG for file in files):
            tombstones += _tombstone_files(task, storage, group_tombstones, files)


def _tombstone_files(
    task: RestageTask, storage: Storage, tombstones: TombstoneSet, files: Sequence[DataFile]
) -> tuple[DataFile, ...]:
    file_group = files[0].file_group
    placement = Placement(task.then, bucket_slot(file_group), files)
    with DataSink(
        storage,
        task.now,
        file_group=file_group,
        path_of=lambda folder, of: written_path(task.data_prefix, folder, of, task.attempt, random_hex(4)),
        schema=tombstone_schema(task.now),
        kind=FileKind.TOMBSTONE,
        index=IndexKind.RECORD,
    ) as sink:
        for number in tombstones.numbers:
            for rows in tombstones.left(number):
                sink.write(placement.of_file(number), rows)
        for slot, rows in placement.split_tombstones(*tombstones.new()):
            sink.write(slot, rows)
        return sink.finish()
