"""The files of a result as one content: one array, one header, one stream."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.infra.files.storage import Storage
from app.kernel.codecs.column_ids import with_ids
from app.kernel.codecs.csv.encode_csv import csv_header
from app.kernel.format.file_format import FileFormat
from app.kernel.format.schema.types import annotated

_STEP_BYTES: Final = 1024 * 1024


class _File(Protocol):
    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...


class JoinedContent:
    """Joins files that `ExportSink` has written. The caller bounds their size."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def joined(
        self, format_: FileFormat, schema: pa.Schema, files: Sequence[_File], about: bytes
    ) -> Iterator[bytes]:
        """The content in parts. `about`: the members of the JSON object after its `rows`.

        Parquet takes one file at most. Raises CorruptFile.
        """
        match format_:
            case FileFormat.JSON:
                yield b'{"rows":['
                for number, file in enumerate(files):
                    if number:
                        yield b","
                    # Without the brackets of its own array.
                    yield from self._bytes(file, 1, file.size_bytes - 1)
                yield b"]," + about + b"}"
            case FileFormat.CSV:
                header = csv_header(schema)
                yield header
                for file in files:
                    yield from self._bytes(file, len(header), file.size_bytes)
            case FileFormat.NDJSON:
                for file in files:
                    yield from self._bytes(file, 0, file.size_bytes)
            case FileFormat.ARROW:
                yield from self._stream(schema, files)
            case FileFormat.PARQUET:
                yield from self._bytes(files[0], 0, files[0].size_bytes) if files else [_empty(schema)]

    def _bytes(self, file: _File, first: int, end: int) -> Iterator[bytes]:
        with self._storage.open(file.path) as stream:
            for start in range(first, end, _STEP_BYTES):
                yield stream.read_at(min(_STEP_BYTES, end - start), start)

    def _stream(self, schema: pa.Schema, files: Sequence[_File]) -> Iterator[bytes]:
        # The files have the extension types of Arrow, which the writer adds again.
        return stream_parts(annotated(schema), (_stored(batch, schema) for batch in self._batches(files)))

    def _batches(self, files: Sequence[_File]) -> Iterator[pa.RecordBatch]:
        for file in files:
            with self._storage.open(file.path) as stream:
                reader = ipc.open_file(stream)
                for number in range(reader.num_record_batches):
                    yield reader.get_batch(number)


def _stored(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    return batch if batch.schema.equals(schema) else batch.cast(schema)


def stream_parts(schema: pa.Schema, rows: Iterable[pa.RecordBatch | pa.Table]) -> Iterator[bytes]:
    """An Arrow IPC stream in parts: one for each batch or table of rows, which have the schema, and its end."""
    sink = _Written()
    with ipc.new_stream(pa.PythonFile(sink, mode="w"), schema) as writer:
        for each in rows:
            writer.write(each)
            yield sink.taken()
    yield sink.taken()


class _Written(io.RawIOBase):
    """Written bytes that were not taken yet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        part = bytes(memoryview(data).cast("B"))  # type: ignore[arg-type]
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def tell(self) -> int:
        return self._position

    def taken(self) -> bytes:
        parts, self._parts = self._parts, []
        return b"".join(parts)


def _empty(schema: pa.Schema) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(annotated(with_ids(schema)).empty_table(), sink)
    return bytes(sink.getvalue().to_pybytes())
