"""Compares the rows of file groups at two versions: applies `app.kernel.commit.comparison` to stored files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.slices.slice_merge import row_hashes
from app.infra.files.slices.spill import SpillBuffer
from app.kernel.commit.comparison import CompareTask, RowDifferences, compare_rows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.schema.schema_projection import project_rows


def compare(task: CompareTask, slices: SliceReader, memory: MemoryBudget) -> RowDifferences:
    """Compares the rows, split by key over a scratch folder if they do not fit into memory. Raises CorruptFile."""
    target = task.dataset.schema.to_arrow()
    empty = target.empty_table()
    row_count = sum(file.live_rows for group in (*task.files_before, *task.files_after) for file in group)
    same = sum(rows.num_rows for rows in _rows(slices, task.dataset_after, task.equal_groups, target, memory))
    differences = RowDifferences(unchanged_rows=same)
    with SpillBuffer(
        row_hashes(task.dataset),
        memory_bytes=memory.bytes_max,
        expected_rows=row_count,
        scratch=memory.scratch,
    ) as rows_by_key:
        for rows in _rows(slices, task.dataset_before, task.files_before, target, memory):
            rows_by_key.add_live(rows)
        for rows in _rows(slices, task.dataset_after, task.files_after, target, memory):
            rows_by_key.add_incoming(rows)
        for part in rows_by_key.parts():
            differences += compare_rows(
                task.dataset,
                empty if part.live is None else part.live,
                empty if part.incoming is None else part.incoming,
            )
    return differences


def _rows(
    slices: SliceReader,
    dataset: DatasetDefinition,
    groups: Iterable[tuple[DataFile, ...]],
    target: pa.Schema,
    memory: MemoryBudget,
) -> Iterator[pa.Table]:
    """The rows as readers saw them, with the columns to compare."""
    names = dataset.schema.names()
    for files in groups:
        for block in merged_blocks(slices, dataset, files, memory):
            yield project_rows(block.rows.select(names), target)
