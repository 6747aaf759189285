"""Verifies the files of a part of a table against its changelog: applies `app.kernel.changelog.fold_check` to stored
files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from app.infra.files.errors import CorruptFile
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.slices.slice_merge import row_hashes
from app.infra.files.slices.spill import SpillBuffer
from app.kernel.changelog.fold_check import BEFORE, check_fold
from app.kernel.changelog.shared_files import own_rows
from app.kernel.changelog.verification import FoldTask, FoldVerdict
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogSegment, DataFile, FileKind, StoredFile
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import META_FIELDS
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.schema_projection import field_id

_OFFSET_FIELD = META_FIELDS[1]


def check_files(slices: SliceReader, task: FoldTask, memory: MemoryBudget) -> FoldVerdict:
    """Folds the changes and compares; data that do not fit into memory are split by key over a scratch folder.

    Raises CorruptFile for a file that does not match the catalogue, or that has contents which no file of the dataset
    may have.
    """
    dataset = task.dataset
    _check_schemas(slices, task)
    data = [file for group in (*task.start, *task.files) for file in group]
    total = sum(file.row_count for file in data) + sum(segment.row_count for segment in task.segments)
    empty = _change_schema(dataset).empty_table(), _row_schema(dataset).empty_table()
    verdict = FoldVerdict()
    with SpillBuffer(
        row_hashes(dataset), memory_bytes=memory.bytes_max, expected_rows=total, scratch=memory.scratch
    ) as rows_by_key:
        for rows in _rows(slices, task, task.start, memory):
            rows_by_key.add_incoming(_as_changes(rows, dataset))
        for segment in task.segments:
            for changes in _changes(slices, segment, task):
                rows_by_key.add_incoming(changes)
        for rows in _rows(slices, task, task.files, memory):
            rows_by_key.add_live(rows)
        for part in rows_by_key.parts():
            verdict += check_fold(
                dataset,
                empty[0] if part.incoming is None else part.incoming,
                empty[1] if part.live is None else part.live,
            )
    return verdict


def _row_schema(dataset: DatasetDefinition) -> pa.Schema:
    # A forbidden null is a difference to report, unless it is in a key.
    key = key_fields(dataset)
    return pa.schema([field.with_nullable(field.name not in key) for field in dataset.schema.to_arrow()])


def _change_schema(dataset: DatasetDefinition) -> pa.Schema:
    return pa.schema([OP_FIELD, _OFFSET_FIELD, *_row_schema(dataset)])


def _rows(
    slices: SliceReader, task: FoldTask, groups: Iterable[tuple[DataFile, ...]], memory: MemoryBudget
) -> Iterator[pa.Table]:
    names = task.dataset.schema.names()
    for group in groups:
        has_log = any(file.kind is FileKind.LOG for file in group)
        # Where nothing is merged, the faulty file can be named.
        for files in [group] if has_log else [(file,) for file in group]:
            with _readable(files[0]):
                for block in merged_blocks(slices, task.dataset, files, memory):
                    rows = own_rows(block.rows, [files[0].file_group], task.dataset, task.share, task.shares)
                    yield rows.select(names).cast(_row_schema(task.dataset))


def _changes(slices: SliceReader, segment: ChangelogSegment, task: FoldTask) -> Iterator[pa.Table]:
    schema = pa.schema([OP_FIELD, *_row_schema(task.dataset)])
    first, end_row = segment.first_offset, segment.row_of(segment.end_offset)
    with _readable(segment.file):
        for start, end in slices.reader.row_group_bounds(segment.file):
            start, end = max(start, segment.first_row), min(end, end_row)
            if start >= end:
                continue
            rows = slices.reader.read_slice(segment.file, schema, start, end - start)
            unknown_ops = [op for op in np.unique(rows.column(OP_COLUMN)) if op not in list(Op)]
            if unknown_ops:
                raise CorruptFile(
                    f"{segment.file.path} has changes with op {unknown_ops[0]}", path=segment.file.path
                )
            offsets = np.arange(first, first + rows.num_rows)
            first += rows.num_rows
            rows = rows.add_column(1, _OFFSET_FIELD, pa.array(offsets, pa.int64()))
            yield own_rows(rows, [segment.file.file_group], task.dataset, task.share, task.shares)


def _as_changes(rows: pa.Table, dataset: DatasetDefinition) -> pa.Table:
    """The rows that a fold starts with."""
    offsets = np.full(rows.num_rows, BEFORE, dtype=np.int64)
    ops = np.full(rows.num_rows, Op.APPEND, dtype=np.uint8)
    return pa.table([pa.array(ops), pa.array(offsets), *rows.columns], schema=_change_schema(dataset))


@contextmanager
def _readable(file: StoredFile) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, ValueError) as error:
        raise CorruptFile(
            f"{file.path} has values that the dataset does not allow: {error}", path=file.path
        ) from error


def _check_schemas(slices: SliceReader, task: FoldTask) -> None:
    """Checks the columns of files. A missing column would be read as null, so a file must have those of its schema."""
    data = [file for group in (*task.start, *task.files) for file in group if file.kind.holds_rows]
    for file in {each.path: each for each in (*data, *(segment.file for segment in task.segments))}.values():
        schema = task.schemas.get(file.schema_id)
        if schema is None:
            raise CorruptFile(
                f"{file.path} was written under schema {file.schema_id}, which the dataset did not have",
                path=file.path,
            )
        column_ids = {field_id(field) for field in slices.reader.open(file).schema_arrow} - {None}
        if column_ids != _ids(schema):
            raise CorruptFile(
                f"{file.path} has the columns with ids {sorted(column_ids, key=str)}; those of schema {schema.id}, "
                f"under which it was written, are {sorted(_ids(schema))}",
                path=file.path,
            )


def _ids(schema: Schema) -> set[int]:
    return {field.id for field in schema.fields}
