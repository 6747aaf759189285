"""Row ranges of a table at one version, for small reads."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np
import pyarrow as pa

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.memory_size import table_bytes
from app.infra.files.parquet_file import ParquetReader, row_groups_with
from app.infra.files.slices.derived_columns import block_rows, of_file, projected
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_range import MergedRange
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.storage import Storage
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.index.deletion_vector import live_mask
from app.kernel.format.rows.meta_columns import DERIVED_NAMES, resolved
from app.kernel.format.schema.schema_projection import field_id
from app.kernel.sql.conditions.prune import RowFilter

_CACHE_BYTES = 64 * 1024 * 1024


class TableReader:
    """Live rows of a file group by number, with logs merged in. Safe to use from any thread."""

    def __init__(
        self,
        storage: Storage,
        reader: ParquetReader,
        memory: MemoryBudget,
        *,
        cache_bytes: int = _CACHE_BYTES,
    ) -> None:
        """`memory`: the limit for one read to merge logs. `cache_bytes`: the size of the cache of merged rows, for all
        groups.
        """
        self._reader = reader
        self._vectors = VectorReader(storage)
        self._slices = SliceReader(reader, self._vectors)
        self._memory = memory
        self._cache_bytes = cache_bytes
        # One range of each group, and always the last one: a reader of a large group continues in it.
        self._merged_rows = ByteCache[str, MergedRange](cache_bytes, keeps_last=True)

    def read_group(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int = sys.maxsize,
    ) -> pa.Table:
        """Live rows [first_row, first_row + rows) of a group: fewer at its end, and fewer, but at least one, of
        `bytes_max` bytes or more. `files`: in the order of their commits.

        `schema`: columns of the dataset, stored meta columns, and those derived from the file. A row that a log has
        added is in no file, so its file name is null. Rows always have the same numbers. Raises CorruptFile.
        """
        if any(file.kind is FileKind.LOG for file in files):
            return self._of_merged(dataset, files, schema, first_row, rows, bytes_max)
        tables = [schema.empty_table()]
        for file in files:
            if file.kind is not FileKind.BASE:
                continue
            while rows > 0 and bytes_max > 0 and first_row < file.live_rows:
                count = min(rows, file.live_rows - first_row)
                tables.append(self._of_file(file, schema, first_row, count, bytes_max))
                first_row += tables[-1].num_rows
                rows -= tables[-1].num_rows
                bytes_max -= tables[-1].nbytes
            first_row -= file.live_rows
            if rows <= 0 or bytes_max <= 0:
                break
        return pa.concat_tables(tables)

    def row_ranges(
        self, files: Sequence[DataFile], row_filter: RowFilter, first_row: int, end: int | None
    ) -> Iterator[tuple[int, int | None]]:
        """The ranges of live rows [first_row, end) of a group that may have matching rows: [first, end) of row groups,
        in order.

        A file without matching row groups has an empty range. A merged group is one range, since its rows are only
        known after the merge. Lazy: opens a file when it is reached. Raises CorruptFile.
        """
        if any(file.kind is FileKind.LOG for file in files):
            yield first_row, end
            return
        start = 0
        for file in files:
            stop = start + file.live_rows
            if file.kind is FileKind.BASE and first_row < stop and (end is None or start < end):
                last = stop if end is None else min(end, stop)
                has_ranges = False
                for begin, behind in self._live_row_ranges(file, row_filter):
                    inside = max(start + begin, first_row), min(start + behind, last)
                    if inside[0] < inside[1]:
                        has_ranges = True
                        yield inside
                if not has_ranges:
                    yield last, last
            if file.kind is FileKind.BASE:
                start = stop

    def _live_row_ranges(self, file: DataFile, row_filter: RowFilter) -> Iterator[tuple[int, int]]:
        """The row groups of a file that may have matching rows, by the numbers of their live rows."""
        parquet = self._reader.open(file)
        metadata, group_numbers = parquet.metadata, set(row_groups_with(parquet, row_filter))
        deletions = None if file.deletion_vector is None else self._vectors.read(file.deletion_vector)
        file_rows = live = 0
        for group in range(metadata.num_row_groups):
            file_rows += metadata.row_group(group).num_rows
            first, live = (
                live,
                file_rows
                if deletions is None or not file_rows
                else file_rows - deletions.rank(file_rows - 1),
            )
            if group in group_numbers:
                yield first, live

    def _of_file(
        self, file: DataFile, schema: pa.Schema, first_row: int, rows: int, bytes_max: int
    ) -> pa.Table:
        """Some live rows from the first on, at least one."""
        first, last, live = first_row, first_row + rows, None
        if file.deletion_vector is not None:
            live = live_mask(self._vectors.read(file.deletion_vector), 0, file.row_count)
            places = np.flatnonzero(live)[first_row : first_row + rows]
            first, last = int(places[0]), int(places[-1]) + 1
        file_schema = pa.schema([field for field in schema if field.name not in DERIVED_NAMES])
        table = self._reader.read_slice(file, file_schema, first, last - first, bytes_max=bytes_max)
        if live is not None:
            # The first row that is read is live.
            table = table.filter(pa.array(live[first : first + table.num_rows]))
        table = resolved(table, file.written_version, file.first_offset)
        return projected(table, schema, of_file(file, table.num_rows, schema))

    def _of_merged(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int,
    ) -> pa.Table:
        # The paths identify the version of the files: a file that lost rows has another deletion vector. Under another
        # schema of the dataset, a column of the same name may be another column.
        columns = [f"{field_id(field)} {field.type} {field.name}" for field in schema]
        key = "|".join([*(path for file in files for path in file.paths), *columns])
        cached_range = self._merged_rows.get(key)
        if cached_range is None or not cached_range.has(first_row, rows, bytes_max):
            cached_range = self._merge(dataset, files, schema, first_row, rows, bytes_max)
            self._merged_rows.put(key, cached_range, table_bytes(cached_range.rows))
        page = cached_range.rows_from(first_row, rows)
        return page if page.nbytes <= bytes_max else page.slice(0, _rows_up_to(page, bytes_max))

    def _merge(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int,
    ) -> MergedRange:
        """A range of the merged group with these rows, from the first row to the last for which there is room.

        It has at least `bytes_max` bytes of the rows, if these are too large.

        A reader that requests the next page then rarely needs another merge of the group.
        """
        parts: list[pa.Table] = []
        first = end = size = 0
        with closing(merged_blocks(self._slices, dataset, files, self._memory)) as blocks:
            for block in blocks:
                if size >= self._cache_bytes:
                    partial_range = MergedRange(first=first, rows=pa.concat_tables(parts), at_end=False)
                    if partial_range.has(first_row, rows, bytes_max):
                        return partial_range
                table = block_rows(block, dataset, files, schema)
                parts.append(table)
                end += table.num_rows
                size += table.nbytes
                while size > self._cache_bytes and first + parts[0].num_rows <= first_row:
                    first_part = parts.pop(0)
                    first += first_part.num_rows
                    size -= first_part.nbytes
                    if not parts:
                        break
        rows_to_end = pa.concat_tables([schema.empty_table(), *parts])
        return MergedRange(first=first, rows=rows_to_end, at_end=True)


def _rows_up_to(rows: pa.Table, bytes_max: int) -> int:
    """The number of the first rows that have at least `bytes_max` bytes together."""
    low, high = 1, rows.num_rows
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if rows.slice(0, middle).nbytes >= bytes_max else (middle + 1, high)
    return low
