"""Parquet files of a dataset: base files and changelog files, written with checksum and statistics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from app.infra.files.checksums import HashingSink, buffered, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.memory_size import footer_bytes, table_bytes
from app.infra.files.parquet_encoding import column_layout, stored_as_dictionaries
from app.infra.files.statistics import row_groups, row_ranges
from app.infra.files.storage import Storage
from app.infra.outages import fault_of_disk
from app.infra.sharing.byte_cache import ByteCache
from app.kernel.format.file_format import FileCompression
from app.kernel.format.file_group import StoredFile
from app.kernel.format.rows.file_columns import as_stored, file_schema
from app.kernel.format.rows.row_sizes import rows_within
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.schema_projection import project_rows, sources
from app.kernel.sql.conditions.prune import RowFilter
from app.kernel.sql.conditions.tree import Filter

BASE_ROW_GROUP_ROWS: Final = 128 * 1024
CHANGELOG_ROW_GROUP_ROWS: Final = 16 * 1024
# A filter on the columns of the order reads at most this number of extra rows at each end.
CLUSTERED_ROW_GROUP_ROWS: Final = 32 * 1024
# Of a data file that is a changelog file, too: the first page of a feed decodes a row group, whatever its own size.
SHARED_ROW_GROUP_ROWS: Final = 64 * 1024
# The most bytes of rows in a row group, unless it has one row: readers decode a row group as a whole.
ROW_GROUP_BYTES_MAX: Final = 64 * 1024 * 1024
# Larger row groups, which earlier releases wrote, are read in steps of about this size.
_STEP_BYTES: Final = 16 * 1024 * 1024
# Smaller files are read as a whole, with one request, and row groups of this size are decoded again rather than cached.
_SMALL_BYTES: Final = 64 * 1024
CACHE_BYTES: Final = 48 * 1024 * 1024
_DICTIONARY: Final = pa.dictionary(pa.int32(), pa.string())
_Columns: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
# By path, number of the row group, and columns.
_RowGroups: TypeAlias = ByteCache[tuple[str, int, _Columns], pa.Table]


@dataclass(kw_only=True)
class ParquetSink:
    """An open Parquet file. Rows of `schema` are stored under `stored_schema`. They are divided into row groups of
    `row_group_rows`, or fewer that have `ROW_GROUP_BYTES_MAX`; less than one group is buffered.
    """

    path: str
    out: pa.NativeFile
    schema: pa.Schema
    stored_schema: pa.Schema
    open_writer: Callable[[pa.Table], pq.ParquetWriter]
    hashing: HashingSink
    row_group_rows: int
    metadata: list[pq.FileMetaData]
    writer: pq.ParquetWriter | None = None
    rows: int = 0
    complete: bool = False
    _pending: list[pa.Table] = field(default_factory=list)
    _pending_rows: int = 0
    _pending_bytes: int = 0

    def write(self, table: pa.Table) -> None:
        """Adds rows with the file's schema."""
        self.rows += table.num_rows
        self._pending.append(table)
        self._pending_rows += table.num_rows
        self._pending_bytes += table.nbytes
        if self._pending_rows >= self.row_group_rows or self._pending_bytes > ROW_GROUP_BYTES_MAX:
            self._flush(everything=False)

    def write_group(self, table: pa.Table) -> None:
        """Adds rows as a row group of their own, at once; not to be combined with `write`."""
        self.rows += table.num_rows
        self._write_group(table)

    @property
    def written_bytes(self) -> int:
        """The bytes of the row groups written so far, including bytes that have not reached the storage yet."""
        return int(self.out.tell())

    def finish(self) -> None:
        """Writes the buffered rows, then the footer."""
        self._flush(everything=True)
        self._writer_of(self.schema.empty_table()).close()
        self.complete = True

    def _writer_of(self, rows: pa.Table) -> pq.ParquetWriter:
        """The writer. The first rows decide the layout of the file."""
        if self.writer is None:
            self.writer = self.open_writer(rows)
        return self.writer

    def _write_group(self, table: pa.Table) -> None:
        self._writer_of(table).write_table(
            as_stored(table, self.stored_schema), row_group_size=max(table.num_rows, 1)
        )

    def _flush(self, *, everything: bool) -> None:
        if not self._pending:
            return
        rest = pa.concat_tables(self._pending)
        while rest.num_rows and (everything or self._fills_group(rest)):
            group = rest.slice(0, self.row_group_rows)
            if group.nbytes > ROW_GROUP_BYTES_MAX:
                group = group.slice(0, rows_within(group, ROW_GROUP_BYTES_MAX))
            self._write_group(group)
            rest = rest.slice(group.num_rows)
        self._pending = [rest] if rest.num_rows else []
        self._pending_rows, self._pending_bytes = rest.num_rows, rest.nbytes if rest.num_rows else 0

    def _fills_group(self, rows: pa.Table) -> bool:
        return bool(rows.num_rows >= self.row_group_rows or rows.nbytes > ROW_GROUP_BYTES_MAX)

    def stored(self, schema_id: int) -> StoredFile:
        """The catalogue's entry of the finished file."""
        return StoredFile(
            path=self.path,
            size_bytes=self.hashing.size_bytes,
            checksum=self.hashing.checksum,
            row_count=self.rows,
            schema_id=schema_id,
        )


@contextmanager
def create_parquet(
    storage: Storage,
    path: str,
    schema: pa.Schema,
    *,
    row_group_rows: int,
    compression: FileCompression = FileCompression.ZSTD,
) -> Iterator[ParquetSink]:
    """A new Parquet file, of the present layout. On an exception, or without `finish`, no file is left.

    Raises StorageFull.
    """
    with suppress(_Unfinished), storage.create(path) as file:
        with parquet_sink(
            HashingSink(file), path, schema, row_group_rows=row_group_rows, compression=compression
        ) as sink:
            yield sink
        if not sink.complete:
            raise _Unfinished


@contextmanager
def parquet_sink(
    hashing: HashingSink,
    path: str,
    schema: pa.Schema,
    *,
    row_group_rows: int,
    compression: FileCompression = FileCompression.ZSTD,
) -> Iterator[ParquetSink]:
    """A Parquet file, of the present layout, that is written to an open file. Its bytes are in `hashing` on leaving."""
    metadata: list[pq.FileMetaData] = []
    with ExitStack() as stack:
        out = stack.enter_context(buffered(hashing))
        stored_schema = file_schema(schema)

        def open_writer(rows: pa.Table) -> pq.ParquetWriter:
            return stack.enter_context(column_layout(rows, compression).open(out, stored_schema, metadata))

        yield ParquetSink(
            path=path,
            out=out,
            schema=schema,
            stored_schema=stored_schema,
            open_writer=open_writer,
            hashing=hashing,
            row_group_rows=row_group_rows,
            metadata=metadata,
        )


class _Unfinished(Exception):
    """Makes the storage delete a file that is not needed."""


class _ParquetFile(pq.ParquetFile):
    """An opened file. It makes its Arrow schema once, which would be a tenth of the work of reading a small file."""

    @cached_property
    def schema_arrow(self) -> pa.Schema:
        return super().schema_arrow


class ParquetReader:
    """Reads the files of commits; rejects any file that does not match its commit.

    Caches footers, and decoded row groups that a slice ended within: a reader that pages through a file would otherwise
    decode nearly every row group twice. A row group is removed when it is used, since most readers pass a place once.
    """

    def __init__(self, storage: Storage, cache_bytes: int = CACHE_BYTES) -> None:
        """`cache_bytes`: the memory of its caches."""
        self._storage = storage
        self._footers = ByteCache[str, pq.FileMetaData](cache_bytes // 4)
        self._row_groups = _RowGroups(cache_bytes - cache_bytes // 4)

    @property
    def cached_bytes(self) -> int:
        """The bytes in its caches."""
        return self._footers.size_bytes + self._row_groups.size_bytes

    def open(self, file: StoredFile) -> pq.ParquetFile:
        """The opened file. Raises CorruptFile."""
        return self.opened(file).parquet

    def opened(self, file: StoredFile) -> OpenedFile:
        """The opened file, for several reads of rows. Raises CorruptFile."""
        small = file.size_bytes <= _SMALL_BYTES
        source = self._storage.open(file.path)
        if small:
            source = pa.BufferReader(source.read_buffer())
        verify(file, source)
        footer = None if small else self._footers.get(file.path)
        try:
            parquet = _ParquetFile(source, metadata=footer)
        except (pa.ArrowInvalid, OSError) as error:
            raise fault_of_disk(error, file.path) or CorruptFile(
                f"{file.path} is not a readable Parquet file: {error}", path=file.path
            ) from error
        if parquet.metadata.num_rows != file.row_count:
            raise CorruptFile(
                f"{file.path} has {parquet.metadata.num_rows} rows, but its commit recorded {file.row_count}",
                path=file.path,
            )
        if not small and footer is None:
            self._footers.put(file.path, parquet.metadata, footer_bytes(parquet.metadata))
        return OpenedFile(path=file.path, source=source, parquet=parquet, row_groups=self._row_groups)

    def read_slice(
        self,
        file: StoredFile,
        schema: pa.Schema,
        first_row: int,
        rows: int,
        *,
        bytes_max: int | None = None,
    ) -> pa.Table:
        """Rows [first_row, first_row + rows) under `schema`. Reads only the row groups that contain them.

        `bytes_max`: the rows may end, after at least one, where they have this size. Raises CorruptFile, and
        pyarrow.ArrowInvalid for a value that the types of an earlier schema cannot hold.
        """
        return self.opened(file).columns(schema).read(first_row, rows, bytes_max=bytes_max)

    def row_ranges(
        self, file: StoredFile, where: Filter, schema: Schema, first_row: int, rows: int
    ) -> list[tuple[int, int]]:
        """`OpenedFile.row_ranges` of a file. Raises CorruptFile."""
        return self.opened(file).row_ranges(where, schema, first_row, rows)

    def row_group_bounds(self, file: StoredFile) -> list[tuple[int, int]]:
        """`OpenedFile.row_group_bounds` of a file. Raises CorruptFile."""
        return self.opened(file).row_group_bounds()


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedFile:
    """A file whose checksum and footer were read. `row_groups`: as in `FileColumns`."""

    path: str
    source: pa.NativeFile
    parquet: pq.ParquetFile
    row_groups: _RowGroups

    def with_dictionaries(self, schema: pa.Schema) -> pa.Schema:
        """`schema` with those of its texts as dictionaries that the file stores so.

        Such a column is read in a third of the time, and only the rows that are needed are made texts of.
        """
        if not any(pa.types.is_string(field.type) for field in schema):
            return schema
        names = sources(self.parquet.schema_arrow, schema)
        dictionary_names = stored_as_dictionaries(self.parquet, {name for name in names if name is not None})
        return pa.schema(
            field.with_type(_DICTIONARY)
            if name in dictionary_names and pa.types.is_string(field.type)
            else field
            for name, field in zip(names, schema, strict=True)
        )

    def columns(self, schema: pa.Schema) -> FileColumns:
        """The columns of `schema`, which may be one `with_dictionaries`."""
        parquet, names = self.parquet, _stored_columns(self.parquet, schema)
        _, dictionaries = names
        if dictionaries:
            parquet = _ParquetFile(self.source, metadata=parquet.metadata, read_dictionary=list(dictionaries))
        return FileColumns(
            path=self.path, parquet=parquet, schema=schema, names=names, row_groups=self.row_groups
        )

    def row_ranges(self, where: Filter, schema: Schema, first_row: int, rows: int) -> list[tuple[int, int]]:
        """The parts of the rows [first_row, first_row + rows) that may match: [first, end) of each row group, in order.

        Row groups that their bounds exclude are omitted. `schema`: the schema of the filter, whatever schema the file
        was written under.
        """
        return list(row_ranges(self.parquet, where, schema, first_row, rows))

    def row_group_bounds(self) -> list[tuple[int, int]]:
        """The first row of each row group, and the row behind its last, in order."""
        metadata = self.parquet.metadata
        ends = list(accumulate(metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)))
        return list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []


@dataclass(frozen=True, kw_only=True, slots=True)
class FileColumns:
    """Some columns of an opened file. `row_groups`: those that are cached for the next slices of any reader."""

    path: str
    parquet: pq.ParquetFile
    schema: pa.Schema
    names: _Columns
    row_groups: _RowGroups

    def read(self, first_row: int, rows: int, *, bytes_max: int | None = None) -> pa.Table:
        """`ParquetReader.read_slice`."""
        parquet, schema = self.parquet, self.schema
        names, _ = self.names
        tables = [schema.empty_table()]
        start = 0
        room = sys.maxsize if bytes_max is None else bytes_max
        for number in range(parquet.metadata.num_row_groups):
            end = start + parquet.metadata.row_group(number).num_rows
            if first_row < end and start < first_row + rows:
                # The end is explicit: a group without requested columns has no rows that a slice could end with.
                begin, stop = max(first_row, start), min(first_row + rows, end)
                key = (self.path, number, self.names)
                group = self.row_groups.take(key)
                if group is None and room < _group_bytes(parquet, number, names):
                    part = _part_of_group(parquet, number, names, begin - start, stop - begin, room)
                    tables.append(project_rows(part, schema))
                else:
                    group = _row_group(parquet, number, names) if group is None else group
                    tables.append(project_rows(group.slice(begin - start, stop - begin), schema))
                    if (first_row + rows < end or bytes_max is not None) and _is_cached(parquet, number):
                        self.row_groups.put(key, group, table_bytes(group))
                room -= tables[-1].nbytes
                if room <= 0 or (bytes_max is not None and tables[-1].num_rows < stop - begin):
                    break
            start = end
        return pa.concat_tables(tables)


def row_groups_with(parquet: pq.ParquetFile, row_filter: RowFilter | None = None) -> list[int]:
    """The numbers of the row groups of an opened file that may have matching rows, in order; all for None."""
    every = range(parquet.metadata.num_row_groups)
    return list(every if row_filter is None else row_groups(parquet, row_filter, every))


def read_row_group(parquet: pq.ParquetFile, number: int, schema: pa.Schema) -> pa.Table:
    """Row group `number` of an opened file under `schema`. Raises pyarrow.ArrowInvalid as `read_slice` does."""
    names, _ = _stored_columns(parquet, schema)
    return project_rows(_row_group(parquet, number, names), schema)


def _stored_columns(parquet: pq.ParquetFile, schema: pa.Schema) -> _Columns:
    """The columns to read, and those of them to read as dictionaries."""
    source_fields = [
        (name, field)
        for name, field in zip(sources(parquet.schema_arrow, schema), schema, strict=True)
        if name is not None
    ]
    names = tuple(dict.fromkeys(name for name, _ in source_fields))
    return names, tuple(name for name, field in source_fields if pa.types.is_dictionary(field.type))


def _row_group(parquet: pq.ParquetFile, number: int, names: tuple[str, ...]) -> pa.Table:
    # Without names, none has to be resolved.
    every = names == tuple(parquet.schema_arrow.names)
    return parquet.read_row_group(number, columns=None if every else list(names), use_threads=False)


def _is_cached(parquet: pq.ParquetFile, number: int) -> bool:
    return bool(parquet.metadata.row_group(number).total_byte_size > _SMALL_BYTES)


def _group_bytes(parquet: pq.ParquetFile, number: int, names: tuple[str, ...]) -> int:
    """The uncompressed size of these columns in a row group, beyond that of one that this release writes, else 0.

    The sizes of columns with dictionaries are less than in memory.
    """
    group = parquet.metadata.row_group(number)
    if group.total_byte_size <= 2 * ROW_GROUP_BYTES_MAX:
        return 0
    columns = (group.column(at) for at in range(group.num_columns))
    name_set = set(names)
    return sum(
        max(each.total_uncompressed_size, 0)
        for each in columns
        if each.path_in_schema in name_set or each.path_in_schema.split(".")[0] in name_set
    )


def _part_of_group(
    parquet: pq.ParquetFile, number: int, names: tuple[str, ...], first: int, rows: int, bytes_max: int
) -> pa.Table:
    """Rows of a large row group from the `first` on, until they have `bytes_max` bytes, at least one."""
    group = parquet.metadata.row_group(number)
    size = max(_group_bytes(parquet, number, names), 1)
    step = max(1, min(group.num_rows, group.num_rows * min(_STEP_BYTES, bytes_max) // size))
    slices: list[pa.RecordBatch] = []
    at = slice_bytes = slice_rows = 0
    batches = parquet.iter_batches(
        batch_size=step, row_groups=[number], columns=list(names), use_threads=False
    )
    for batch in batches:
        begin, end = max(first - at, 0), min(first + rows - at, batch.num_rows)
        at += batch.num_rows
        if begin >= end:
            continue
        slices.append(batch.slice(begin, end - begin))
        slice_bytes += slices[-1].nbytes
        slice_rows += end - begin
        if slice_bytes >= bytes_max or slice_rows >= rows:
            break
    return pa.Table.from_batches(slices)
