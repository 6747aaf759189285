"""The live rows of a file group as readers see them: base files without deleted rows, with the logs merged in."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from app.infra.files.log_file import logged
from app.infra.files.slices.file_slice import Block, SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.slice_merge import merge_incoming
from app.infra.files.slices.tombstone_set import TombstoneSet
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.rows.meta_columns import stored_schema


def merged_blocks(
    slices: SliceReader,
    dataset: DatasetDefinition,
    files: Sequence[DataFile],
    memory: MemoryBudget,
    tombstones: TombstoneSet | None = None,
) -> Generator[Block, None, None]:
    """The rows of one file group, whose `files` are in the order of their commits. Raises CorruptFile.

    With the same memory limit, blocks and rows always have the same order. Rows that a log has added or changed are in
    no file in this form, so their file is -1. Postponed writes are not included: they are invisible until they have a
    bucket. `tombstones`: those of the group, for a caller that uses what the logs make of them.
    """
    schema = stored_schema(dataset)
    base = [number for number, file in enumerate(files) if file.kind is FileKind.BASE]
    logs = [file for file in files if file.kind is FileKind.LOG]
    if not logs:
        yield from slices.blocks(files, schema, base)
        return
    rows = sum(files[number].live_rows for number in base)
    writes = logged(slices.reader, dataset, logs)
    for item in merge_incoming(
        dataset,
        lambda _: slices.blocks(files, schema, base),
        writes,
        memory,
        live_rows=rows,
        tombstones=TombstoneSet.read(slices, dataset, files) if tombstones is None else tombstones,
    ):
        if isinstance(item, Block):
            yield item
            continue
        yield from item.kept_blocks()
        changed_rows = item.result.rows
        if changed_rows.num_rows:
            yield Block(
                file=-1, positions=np.full(changed_rows.num_rows, -1, dtype=np.int64), rows=changed_rows
            )
