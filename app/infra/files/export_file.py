"""The files of exports and of read jobs: tables in one format, each file of limited size, with checksums."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Final, TypeAlias, cast

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.infra.files.checksums import HashingSink, buffered
from app.infra.files.parquet_encoding import repeating_columns
from app.infra.files.parquet_file import BASE_ROW_GROUP_ROWS
from app.infra.files.storage import Storage
from app.kernel.codecs.column_ids import with_ids
from app.kernel.format.file_format import FileFormat
from app.kernel.format.result_file import ExportedFile
from app.kernel.format.schema.types import annotated

_GROUP_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class TextForm:
    """The encoding of rows as text: the text before them, between two batches, and after them."""

    encode: Callable[[pa.Table], bytes]
    header: bytes = b""
    separator: bytes = b""
    trailer: bytes = b""


class Sha256Sink(io.RawIOBase):
    """A write-only file object that forwards all bytes and computes their SHA-256, which every client can check."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._digest = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._sink.write(view)
        self._digest.update(view)
        return view.nbytes

    @property
    def sha256(self) -> str:
        """SHA-256, hexadecimal."""
        return self._digest.hexdigest()


class ExportSink(AbstractContextManager["ExportSink"]):
    """Writes files `{prefix}-{number}.{format}` with rows in the order of their arrival.

    On an exception, or without `finish`, no file is left.
    """

    def __init__(
        self,
        storage: Storage,
        prefix: str,
        format_: FileFormat,
        schema: pa.Schema,
        *,
        target_bytes: int,
        texts: TextForm | None = None,
    ) -> None:
        """`schema`: of the rows. `texts`: for text formats."""
        self._storage = storage
        self._prefix = prefix
        self._format = format_
        self._schema = schema
        self._target_bytes = target_bytes
        self._texts = texts
        self._open: _OpenExportFile | None = None
        self._files: list[ExportedFile] = []
        self._file_count = 0

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._open is not None:
            self._open.drop()
        self._storage.delete([file.path for file in self._files])

    def write(self, rows: pa.Table, end: int) -> None:
        """Adds rows that stay in one file. With them, the files are complete up to the position `end`.

        Raises StorageFull.
        """
        if rows.num_rows == 0:
            return
        if self._open is None:
            self._open = self._begin()
        self._open.write(rows, end)
        if self._open.size_bytes >= self._target_bytes:
            self._end(self._open)

    def finish(self) -> tuple[ExportedFile, ...]:
        """Closes the open file and returns all files, which are kept."""
        if self._open is not None:
            self._end(self._open)
        files, self._files = tuple(self._files), []
        return files

    def _begin(self) -> _OpenExportFile:
        path = f"{self._prefix}-{self._file_count:05d}.{self._format.value}"
        self._file_count += 1
        return _OpenExportFile(
            path,
            self._storage.create(path),
            self._writer,
            group_bytes=min(self._target_bytes, _GROUP_BYTES),
        )

    def _writer(self, out: pa.NativeFile, rows: pa.Table) -> _Writer:
        """The writer of a file that begins with these rows."""
        match self._format:
            case FileFormat.PARQUET:
                return pq.ParquetWriter(
                    out,
                    annotated(with_ids(self._schema)),
                    compression="zstd",
                    compression_level=1,
                    use_dictionary=repeating_columns(rows) or False,
                    write_statistics=True,
                )
            case FileFormat.ARROW:
                options = ipc.IpcWriteOptions(compression="zstd")
                return ipc.new_file(out, annotated(self._schema), options=options)
            case _:
                if self._texts is None:
                    raise ValueError(f"{self._format.value} needs an encoder of texts")
                return _TextWriter(out, self._texts)

    def _end(self, file: _OpenExportFile) -> None:
        self._files.append(file.finish())
        self._open = None


class _TextWriter:
    def __init__(self, out: pa.NativeFile, texts: TextForm) -> None:
        self._out = out
        self._texts = texts
        self._started = False
        out.write(texts.header)

    def write_table(self, table: pa.Table) -> None:
        if self._started:
            self._out.write(self._texts.separator)
        self._started = True
        self._out.write(self._texts.encode(table))

    def close(self) -> None:
        self._out.write(self._texts.trailer)


_Writer: TypeAlias = pq.ParquetWriter | ipc.RecordBatchFileWriter | _TextWriter


class _OpenExportFile:
    """An open file. Rows are buffered until they fill a row group or a record batch."""

    def __init__(
        self,
        path: str,
        creation: AbstractContextManager[BinaryIO],
        open_writer: Callable[[pa.NativeFile, pa.Table], _Writer],
        *,
        group_bytes: int,
    ) -> None:
        self._path = path
        self._group_bytes = group_bytes
        self._gathered: list[pa.Table] = []
        self._gathered_rows = self._gathered_bytes = 0
        self._stack = ExitStack()
        self._sha256 = Sha256Sink(self._stack.enter_context(creation))
        self._hashing = HashingSink(cast(BinaryIO, self._sha256))
        self._out = self._stack.enter_context(buffered(self._hashing))
        self._open_writer = open_writer
        self._writer: _Writer | None = None
        self._rows = 0
        self._end = 0

    @property
    def size_bytes(self) -> int:
        """The bytes written so far, without buffered rows."""
        return int(self._out.tell())

    def write(self, rows: pa.Table, end: int) -> None:
        self._gathered.append(rows)
        self._gathered_rows += rows.num_rows
        self._gathered_bytes += rows.nbytes
        self._end = end
        if self._gathered_rows >= BASE_ROW_GROUP_ROWS or self._gathered_bytes >= self._group_bytes:
            self._flush()

    def _flush(self) -> None:
        if self._gathered:
            rows = pa.concat_tables(self._gathered).combine_chunks()
            if self._writer is None:
                self._writer = self._open_writer(self._out, rows)
            self._writer.write_table(rows)
            self._rows += self._gathered_rows
            self._gathered.clear()
            self._gathered_rows = self._gathered_bytes = 0

    def finish(self) -> ExportedFile:
        self._flush()
        if self._writer is not None:
            self._writer.close()
        self._stack.close()
        return ExportedFile(
            path=self._path,
            row_count=self._rows,
            size_bytes=self._hashing.size_bytes,
            checksum=self._hashing.checksum,
            sha256=self._sha256.sha256,
            end=self._end,
        )

    def drop(self) -> None:
        """Deletes the file."""
        discard = _DiscardExportFile()
        self._stack.__exit__(_DiscardExportFile, discard, None)


class _DiscardExportFile(Exception):
    """Aborts the creation of a file."""
