"""Counts the distinct values of each column of a table: tasks that make a sketch for each column, and their merge.

A sketch is a HyperLogLog of 4,096 registers of 8 bits (Apache DataSketches). Its estimate has a standard error of
1.6 %, and is nearly exact up to some hundred values. The union of sketches is that of all values, so tasks need not
share any.

Values are equal if their texts in JSON are (`app.kernel.codecs.json`), which all types have: nested ones by all
members, decimals by their digits, floats by their bits, so that 0.0 and -0.0 are two values. Nulls are no value.
Maps are equal whatever the order of their entries.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from datasketches import hll_sketch, hll_union, tgt_hll_type

from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.kernel.codecs.json.sorted_maps import with_sorted_maps
from app.kernel.codecs.json.texts import joined, value_parts
from app.kernel.commit.restore_plan import files_by_group, visible_files
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.file_group import DataFile, FileKind

_LOG_REGISTERS: Final = 12
_SKETCH_BYTES: Final = 1 << _LOG_REGISTERS
# Of the results of all tasks, which are in memory at once.
_RESULTS_BYTES_MAX: Final = 64 * 1024 * 1024
_TASK_BYTES: Final = 64 * 1024 * 1024


class ColumnSketches(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The number of rows; by column, in the order of the schema, the nulls among them and a sketch of the others."""

    rows: int
    nulls: tuple[int, ...]
    sketches: tuple[bytes, ...]


class SketchTask(EngineTask[ColumnSketches], frozen=True, kw_only=True, tag=True):
    """Makes sketches of the columns of `dataset`, over the rows of some file groups, or of single files of them.

    `groups`: files in the order of their commits, merged as readers see them.
    """

    dataset: DatasetDefinition
    groups: tuple[tuple[DataFile, ...], ...]

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        return sum(file.size_bytes for group in self.groups for file in group)


class ColumnCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The number of rows, and by column, in the order of the schema, the estimated number of distinct values."""

    rows: int
    distinct: tuple[int, ...]


def plan_sketches(dataset: DatasetDefinition, live: Iterable[DataFile]) -> list[SketchTask]:
    """Tasks over all visible rows: fewer, and larger, the more columns there are, since each returns all sketches."""
    units = [
        unit for group in files_by_group(visible_files(live)).values() for unit in _separately_read(group)
    ]
    tasks_max = max(1, _RESULTS_BYTES_MAX // (_SKETCH_BYTES * max(1, len(dataset.schema.fields))))
    total = sum(file.size_bytes for unit in units for file in unit)
    enough = max(_TASK_BYTES, -(-total // tasks_max))
    tasks: list[SketchTask] = []
    groups: list[tuple[DataFile, ...]] = []
    size = 0
    for unit in units:
        groups.append(unit)
        size += sum(file.size_bytes for file in unit)
        if size >= enough:
            tasks.append(SketchTask(dataset=dataset, groups=tuple(groups)))
            groups, size = [], 0
    return [*tasks, SketchTask(dataset=dataset, groups=tuple(groups))] if groups else tasks


def sketch_columns(task: SketchTask, slices: SliceReader, memory: MemoryBudget) -> ColumnSketches:
    """Runs a task. Raises CorruptFile.

    It needs memory for a row group at a time, 4 KiB for each column, and for groups with logs that of a merge.
    """
    names = task.dataset.schema.names()
    sketches = [_empty() for _ in names]
    nulls, rows = [0] * len(names), 0
    for group in task.groups:
        for block in merged_blocks(slices, task.dataset, group, memory):
            rows += block.rows.num_rows
            for number, name in enumerate(names):
                column = block.rows.column(name)
                nulls[number] += column.null_count
                _update(sketches[number], column)
    return ColumnSketches(
        rows=rows, nulls=tuple(nulls), sketches=tuple(sketch.serialize_compact() for sketch in sketches)
    )


def count_distinct(parts: Sequence[ColumnSketches], columns: int) -> ColumnCounts:
    """The union of the results of all tasks."""
    rows = sum(part.rows for part in parts)
    distinct = []
    for number in range(columns):
        union = hll_union(_LOG_REGISTERS)
        for part in parts:
            union.update(hll_sketch.deserialize(part.sketches[number]))
        values = rows - sum(part.nulls[number] for part in parts)
        distinct.append(min(round(union.get_estimate()), values))
    return ColumnCounts(rows=rows, distinct=tuple(distinct))


def _separately_read(group: Sequence[DataFile]) -> list[tuple[DataFile, ...]]:
    """The group, if its files are merged; else each file."""
    if any(file.kind is FileKind.LOG for file in group):
        return [tuple(group)]
    return [(file,) for file in group]


def _empty() -> hll_sketch:
    return hll_sketch(_LOG_REGISTERS, tgt_hll_type.HLL_8)


def _update(sketch: hll_sketch, column: pa.ChunkedArray) -> None:
    """Adds the values. Repeated ones are added once, since each addition is a call."""
    for chunk in column.chunks:
        values = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        values = values.drop_null()
        values = with_sorted_maps(values) if pa.types.is_nested(values.type) else values.unique()
        if len(values):
            texts = pc.cast(joined(value_parts(values), len(values)), pa.large_string()).to_pylist()
            deque(map(sketch.update, texts), maxlen=0)
