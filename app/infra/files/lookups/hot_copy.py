"""Copies of data files as uncompressed Arrow, for rows that are needed by position.

Rows at random positions lie in nearly every row group, so Parquet has to decode nearly all of a file for a few of
them. A copy gives them from where they lie. A file without one is copied once more of its row groups would be decoded
for such rows than it has: fewer lookups are not worth a copy, and more cost a process at most twice the copy.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.infra.files.lookups.hot_folder import ROWS, HotFolder, NewFile
from app.infra.files.parquet_file import OpenedFile, ParquetReader, read_row_group
from app.kernel.format.file_group import StoredFile
from app.kernel.format.schema.schema_projection import project_rows, sources

_log = logging.getLogger(__name__)

Positions = npt.NDArray[np.int64]
# The number of rows in a part of a file, and a function that reads them.
_Block = tuple[int, Callable[[], pa.Table]]

# Fewer record batches are faster to read, and larger ones take more memory to write.
_BATCH_ROWS: Final = 128 * 1024
_BATCH_BYTES: Final = 64 * 1024 * 1024
# Rows of a smaller file are read as fast from Parquet.
COPIED_ROWS_MIN: Final = 2_000
_COUNTED_FILES_MAX: Final = 10_000


class HotCopies:
    """Rows of data files by position: from a copy in the folder, or from Parquet if there is no folder or no room."""

    def __init__(self, reader: ParquetReader, folder: HotFolder | None) -> None:
        self._reader = reader
        self._folder = folder
        self._decoded: dict[str, int] = {}

    @contextmanager
    def creating(self, path: str) -> Iterator[CopyWriter]:
        """A new copy of the data file at `path`, for the writer of that file; discarded on an exception."""
        copy = CopyWriter(self._folder, path)
        try:
            yield copy
            copy.publish()
        finally:
            copy.discard()

    def take(self, file: StoredFile, positions: Positions, schema: pa.Schema) -> pa.Table:
        """The rows at these positions, in their order, under `schema`. Creates a missing copy, unless the file is small
        or few of its row groups were decoded.

        Raises CorruptFile, and IndexError for a position behind the last row.
        """
        if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < file.row_count:
            raise IndexError(
                f"{file.path} has {file.row_count} rows, but position {int(positions.max())} was requested"
            )
        copy = self._open(file)
        if copy is not None:
            return _taken(_batches(copy, schema), positions, schema)
        open_file = self._reader.opened(file)
        if self._is_worth_a_copy(file, open_file, positions):
            copy = self._copied(file, open_file.parquet)
        blocks = _row_groups(open_file, schema) if copy is None else _batches(copy, schema)
        return _taken(blocks, positions, schema)

    def read(self, file: StoredFile, schema: pa.Schema) -> pa.Table:
        """All rows under `schema`: from a copy if there is one, else from Parquet. Raises CorruptFile."""
        copy = self._open(file)
        if copy is None:
            return self._reader.read_slice(file, schema, 0, file.row_count)
        return project_rows(copy.read_all().select(_stored_names(copy.schema, schema)), schema)

    def _open(self, file: StoredFile) -> ipc.RecordBatchFileReader | None:
        mapped_file = None if self._folder is None else self._folder.open(_name(file.path))
        try:
            return None if mapped_file is None else ipc.open_file(mapped_file)
        except pa.ArrowInvalid:
            # Another process changed it; the new copy replaces it.
            return None

    def _is_worth_a_copy(self, file: StoredFile, open_file: OpenedFile, positions: Positions) -> bool:
        """Whether more row groups than the file has would be decoded, with the rows at these positions. Counts them."""
        if self._folder is None or file.row_count < COPIED_ROWS_MIN:
            return False
        ends = [end for _, end in open_file.row_group_bounds()]
        group_count = len(np.unique(np.searchsorted(ends, positions, side="right")))
        group_count += self._decoded.pop(file.path, 0)
        if group_count > len(ends):
            return True
        if len(self._decoded) >= _COUNTED_FILES_MAX:
            self._decoded.clear()
        self._decoded[file.path] = group_count
        return False

    def _copied(self, file: StoredFile, parquet: pq.ParquetFile) -> ipc.RecordBatchFileReader | None:
        with self.creating(file.path) as copy:
            for group in range(parquet.metadata.num_row_groups):
                copy.write(parquet.read_row_group(group, use_threads=False))
                if not copy.wanted:
                    break
        return self._open(file)


class CopyWriter:
    """Copies the rows of a data file in order. An error of the folder ends the copy, but never the caller's work."""

    def __init__(self, folder: HotFolder | None, path: str) -> None:
        self._folder = folder
        self._path = path
        self._new: NewFile | None = None
        self._writer: ipc.RecordBatchFileWriter | None = None
        self._pending: list[pa.Table] = []
        self._pending_rows = self._pending_bytes = 0

    @property
    def wanted(self) -> bool:
        """Whether there is a folder that has had room so far."""
        return self._folder is not None

    def write(self, rows: pa.Table) -> None:
        """Adds rows; all have one schema."""
        if self._folder is None or not rows.num_rows:
            return
        self._pending.append(rows)
        self._pending_rows += rows.num_rows
        self._pending_bytes += rows.nbytes
        if self._pending_rows >= _BATCH_ROWS or self._pending_bytes >= _BATCH_BYTES:
            self._attempt(last=False)

    def publish(self) -> None:
        """Makes the copy visible to others. There is no copy of a file that is read as fast from Parquet."""
        if self._new is None and self._pending_rows < COPIED_ROWS_MIN:
            self._pending.clear()
            return
        self._attempt(last=True)

    def discard(self) -> None:
        """Deletes the copy, unless it was published."""
        if self._new is not None:
            self._new.discard()

    def _attempt(self, *, last: bool) -> None:
        if self._folder is None:
            return
        try:
            self._flush(self._folder)
            if last and self._new is not None and self._writer is not None:
                self._writer.close()
                self._new.publish()
        except OSError as error:
            _log.warning("%s has no hot copy: %s", self._path, error)
            self._folder = None
            self._pending.clear()

    def _flush(self, folder: HotFolder) -> None:
        if not self._pending:
            return
        rows = pa.concat_tables(self._pending).combine_chunks()
        self._pending.clear()
        self._pending_rows = self._pending_bytes = 0
        if self._new is None or self._writer is None:
            self._new = folder.create(_name(self._path))
            self._writer = ipc.new_file(self._new.file, rows.schema)
        self._writer.write_table(rows)
        if self._new.file.tell() > folder.bytes_max:
            raise OSError(f"it exceeds the limit of the folder, which is {folder.bytes_max} bytes")


def _name(path: str) -> str:
    return f"{path}{ROWS}"


def _stored_names(file_schema: pa.Schema, schema: pa.Schema) -> list[str]:
    return [name for name in dict.fromkeys(sources(file_schema, schema)) if name is not None]


def _row_groups(open_file: OpenedFile, schema: pa.Schema) -> Iterator[_Block]:
    for number, (first, end) in enumerate(open_file.row_group_bounds()):
        yield end - first, partial(read_row_group, open_file.parquet, number, schema)


def _batches(copy: ipc.RecordBatchFileReader, schema: pa.Schema) -> Iterator[_Block]:
    names = _stored_names(copy.schema, schema)
    for number in range(copy.num_record_batches):
        batch = copy.get_batch(number)
        yield batch.num_rows, partial(pa.Table.from_batches, [batch.select(names)])


def _taken(blocks: Iterator[_Block], positions: Positions, schema: pa.Schema) -> pa.Table:
    """Rows by position among all rows of the blocks. Blocks without such rows are not read."""
    if (positions[1:] < positions[:-1]).any():
        order = np.argsort(positions)
        places = np.empty_like(order)
        places[order] = np.arange(len(order))
        return _taken(blocks, positions[order], schema).combine_chunks().take(pa.array(places))
    parts: list[pa.Table] = []
    first = begin = 0
    for rows, read in blocks:
        end = int(np.searchsorted(positions, first + rows))
        if end > begin:
            parts.append(read().take(pa.array(positions[begin:end] - first)))
        first, begin = first + rows, end
    return project_rows(pa.concat_tables(parts), schema) if parts else schema.empty_table()
