"""Counts the distinct values of each column of a table: tasks that make a sketch for each column, and their merge.

A sketch has the 2,048 smallest hashes of the values (k minimum values, the simplest theta sketch). With fewer hashes it
is exact; else the greatest of them says how close together hashes are, so how many there are: the standard error is
2.2 %. The smallest hashes of several sketches are those of all values, so tasks need not share any.

Values are equal if their texts in JSON are (`app.kernel.codecs.json`), which all types have: nested ones by all
members, decimals by their digits, floats by their bits, so that 0.0 and -0.0 are two values. Nulls are no value.
Maps are equal whatever the order of their entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.kernel.codecs.json.sorted_maps import with_sorted_maps
from app.kernel.codecs.json.texts import joined, value_parts
from app.kernel.commit.restore_plan import files_by_group
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.file_group import DataFile, FileKind, readable_files
from app.kernel.format.index.key_hash import Hashes, hash_keys

_HASHES_MAX: Final = 2_048
_SKETCH_BYTES: Final = 8 * _HASHES_MAX
_HASH_RANGE: Final = 2.0**64
# Of the results of all tasks, which are in memory at once.
_RESULTS_BYTES_MAX: Final = 64 * 1024 * 1024
_TASK_BYTES: Final = 64 * 1024 * 1024


_EMPTY: Final[Hashes] = np.zeros(0, dtype=np.uint64)


class ColumnSketches(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a task has found, by column in the order of the schema."""

    rows: int
    """The number of rows."""
    nulls: tuple[int, ...]
    """The nulls of each column."""
    sketches: tuple[bytes, ...]
    """A sketch of the other values of each column: uint64, ascending."""


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
        unit for group in files_by_group(live).values() for unit in _separately_read(readable_files(group))
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

    It needs memory for a row group at a time, 16 KiB for each column, and for groups with logs that of a merge.
    """
    names = task.dataset.schema.names()
    sketches = [_EMPTY] * len(names)
    nulls, rows = [0] * len(names), 0
    for group in task.groups:
        for block in merged_blocks(slices, task.dataset, group, memory):
            rows += block.rows.num_rows
            for number, name in enumerate(names):
                column = block.rows.column(name)
                nulls[number] += column.null_count
                sketches[number] = _with_values(sketches[number], column)
    return ColumnSketches(
        rows=rows, nulls=tuple(nulls), sketches=tuple(sketch.tobytes() for sketch in sketches)
    )


def count_distinct(parts: Sequence[ColumnSketches], columns: int) -> ColumnCounts:
    """The union of the results of all tasks."""
    rows = sum(part.rows for part in parts)
    distinct = []
    for number in range(columns):
        union = _smallest(_EMPTY, *(np.frombuffer(part.sketches[number], np.uint64) for part in parts))
        values = rows - sum(part.nulls[number] for part in parts)
        distinct.append(min(round(_estimate(union)), values))
    return ColumnCounts(rows=rows, distinct=tuple(distinct))


def _separately_read(group: Sequence[DataFile]) -> list[tuple[DataFile, ...]]:
    """The group, if its files are merged; else each file."""
    if any(file.kind is FileKind.LOG for file in group):
        return [tuple(group)]
    return [(file,) for file in group]


def _smallest(*hashes: Hashes) -> Hashes:
    return np.unique(np.concatenate(hashes))[:_HASHES_MAX]


def _estimate(sketch: Hashes) -> float:
    if len(sketch) < _HASHES_MAX:
        return float(len(sketch))
    return (_HASHES_MAX - 1) * _HASH_RANGE / (float(sketch[-1]) + 1.0)


def _with_values(sketch: Hashes, column: pa.ChunkedArray) -> Hashes:
    """The sketch with the values of a column, of which repeated ones are hashed once."""
    for chunk in column.chunks:
        values = chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk
        values = values.drop_null()
        values = with_sorted_maps(values) if pa.types.is_nested(values.type) else values.unique()
        if not len(values):
            continue
        hashes = hash_keys(pa.chunked_array([joined(value_parts(values), len(values))]))
        if len(sketch) == _HASHES_MAX:
            # Most hashes are greater than all that the sketch keeps.
            hashes = hashes[hashes < sketch[-1]]
        sketch = _smallest(sketch, hashes)
    return sketch
