"""The live rows of a file group as readers see them: base files, without deleted rows, with the logs merged in."""

from __future__ import annotations

from collections.abc import Generator, Sequence

import numpy as np

from app.files.log_file import logged
from app.files.slices.file_slice import Block, SliceReader
from app.files.slices.slice_merge import MemoryBudget, merge_incoming
from app.format.dataset import DatasetDefinition
from app.format.file_group import DataFile, FileKind
from app.format.rows.meta_columns import stored_schema


def merged_blocks(
    slices: SliceReader, dataset: DatasetDefinition, files: Sequence[DataFile], memory: MemoryBudget
) -> Generator[Block, None, None]:
    """The rows of one file group, whose `files` stand in the order of their commits. Raises CorruptFile.

    Block after block they come in the same order each time, given the same memory. Rows that a log has put there or
    changed stand in no file as they are, so theirs is -1.
    Postponed writes are not among them: nobody sees those before they have a bucket.
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
        dataset, lambda _: slices.blocks(files, schema, base), writes, memory, live_rows=rows
    ):
        if isinstance(item, Block):
            yield item
            continue
        yield from item.kept_blocks()
        changed = item.result.rows
        if changed.num_rows:
            yield Block(file=-1, positions=np.full(changed.num_rows, -1, dtype=np.int64), rows=changed)
