"""Rows of a table as of one version, a stretch at a time: what small reads are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from app.files.begun_groups import BegunGroups
from app.files.deletion_vector_file import VectorReader
from app.files.file_slice import Block, SliceReader
from app.files.merged_slice import merged_blocks
from app.files.parquet_file import ParquetReader
from app.files.slice_merge import Memory
from app.files.storage import Storage
from app.lake.conforming import field_id
from app.lake.dataset import DatasetDefinition
from app.lake.deletion_vector import live_mask
from app.lake.file_group import DataFile, FileKind
from app.lake.meta_columns import FILE_NAME_FIELD, PARTITION_FIELD, VERSION_COLUMN, resolved

_MERGED_BYTES: Final = 64 * 1024 * 1024
_DERIVED: Final = (PARTITION_FIELD.name, FILE_NAME_FIELD.name)


class TableReader:
    """Live rows of a file group by number; logs are merged in. Safe to use from any thread."""

    def __init__(self, storage: Storage, reader: ParquetReader, memory: Memory) -> None:
        self._reader = reader
        self._vectors = VectorReader(storage)
        self._slices = SliceReader(reader, self._vectors)
        self._memory = memory
        # A walk that comes back for the next page finds the group merged.
        self._merged = BegunGroups(_MERGED_BYTES)

    def read_group(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
    ) -> pa.Table:
        """Live rows [first_row, first_row + rows) of a group, fewer where it ends. `files`: in order of their commits.

        `schema`: columns of the dataset, stored meta columns, and those derived of the file. Raises CorruptFile.
        """
        if any(file.kind is FileKind.LOG for file in files):
            return self._of_merged(dataset, files, schema, first_row, rows)
        tables = [schema.empty_table()]
        for file in files:
            if file.kind is not FileKind.BASE or rows == 0:
                continue
            if first_row >= file.live_rows:
                first_row -= file.live_rows
                continue
            tables.append(self._of_file(file, schema, first_row, min(rows, file.live_rows - first_row)))
            rows -= tables[-1].num_rows
            first_row = 0
        return pa.concat_tables(tables)

    def _of_file(self, file: DataFile, schema: pa.Schema, first_row: int, rows: int) -> pa.Table:
        first, last, live = first_row, first_row + rows, None
        if file.deletion_vector is not None:
            live = live_mask(self._vectors.read(file.deletion_vector), 0, file.row_count)
            places = np.flatnonzero(live)[first_row : first_row + rows]
            first, last = int(places[0]), int(places[-1]) + 1
        stored = pa.schema([field for field in schema if field.name not in _DERIVED])
        table = self._reader.read_slice(file, stored, first, last - first)
        if live is not None:
            table = table.filter(pa.array(live[first:last]))
        if VERSION_COLUMN in stored.names:
            table = resolved(table, file.written_version, file.first_offset)
        return _with_derived(table, schema, file)

    def _of_merged(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
    ) -> pa.Table:
        # Under another schema of the dataset, a column of the same name may be another.
        columns = tuple(f"{field_id(field)} {field.type} {field.name}" for field in schema)
        key = ("|".join(path for file in files for path in file.paths), 0, columns)
        merged = self._merged.take(key)
        if merged is None:
            blocks = merged_blocks(self._slices, dataset, files, self._memory)
            merged = pa.concat_tables([schema.empty_table(), *_named(blocks, schema, files)])
        if first_row + rows < merged.num_rows:
            self._merged.keep(key, merged)
        return merged.slice(first_row, rows)


def _named(blocks: Iterator[Block], schema: pa.Schema, files: Sequence[DataFile]) -> Iterator[pa.Table]:
    for block in blocks:
        # A row that a log has changed stands in no file as it is: it has the log's partition, and no file's name.
        yield _with_derived(block.rows, schema, files[block.file] if block.file >= 0 else None, files[0])


def _with_derived(
    table: pa.Table, schema: pa.Schema, file: DataFile | None, other: DataFile | None = None
) -> pa.Table:
    place = file or other
    values = {
        PARTITION_FIELD.name: place.slot.partition_path if place else None,
        FILE_NAME_FIELD.name: file.path.rsplit("/", 1)[-1] if file else None,
    }
    columns = [
        pa.repeat(pa.scalar(values[field.name], field.type), table.num_rows)
        if field.name in values
        else table.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
