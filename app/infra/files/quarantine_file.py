"""Quarantine files: bad records of a write, in Parquet, each with its position, its errors and its payload."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from app.infra.files.checksums import verify
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetSink, create_parquet
from app.infra.files.storage import Storage
from app.infra.outages import fault_of_disk
from app.kernel.codecs.json.objects import json_texts
from app.kernel.codecs.record_errors import BadRecord
from app.kernel.codecs.records import RECORD_FIELDS
from app.kernel.format.errors import FieldError
from app.kernel.format.quarantine import QuarantineFile

_FAULT: Final = pa.struct([("pointer", pa.string()), ("detail", pa.string())])
_SCHEMA: Final = pa.schema([("position", pa.int64()), ("errors", pa.list_(_FAULT)), *RECORD_FIELDS])


class QuarantineSink:
    """Writes bad records; the first record creates the file."""

    def __init__(self, storage: Storage, path: str, stack: ExitStack) -> None:
        self._storage = storage
        self._path = path
        self._stack = stack
        self._parquet: ParquetSink | None = None
        self.file: QuarantineFile | None = None
        """The file, once the sink is closed; None without records."""

    def write(self, records: Sequence[BadRecord]) -> None:
        """Adds records, a few megabytes at a time: they are written at once. Raises StorageFull."""
        if self._parquet is None:
            self._parquet = self._stack.enter_context(
                create_parquet(self._storage, self._path, _SCHEMA, row_group_rows=1)
            )
        self._parquet.write_group(_table(records))

    def close(self) -> None:
        """Closes the file."""
        if self._parquet is None:
            return
        self._parquet.finish()
        self._stack.close()
        self.file = QuarantineFile(
            path=self._path,
            size_bytes=self._parquet.hashing.size_bytes,
            checksum=self._parquet.hashing.checksum,
            row_count=self._parquet.rows,
        )


class QuarantineFileStore:
    """Writes and reads quarantine files on a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @contextmanager
    def sink(self, path: str) -> Iterator[QuarantineSink]:
        """A sink for a new file at `path`; on an exception, or without a record, no file is left."""
        with ExitStack() as stack:
            sink = QuarantineSink(self._storage, path, stack)
            yield sink
            sink.close()

    def write(self, records: Sequence[BadRecord], path: str) -> QuarantineFile | None:
        """Stores the records at `path`; None, and no file, without records. Raises StorageFull."""
        with self.sink(path) as sink:
            if records:
                sink.write(records)
        return sink.file

    def write_rows(
        self, rows: pa.Table, positions: Sequence[int], errors: Sequence[FieldError], path: str
    ) -> QuarantineFile | None:
        """Stores, as JSON, rows that fit the schema and were rejected.

        `rows`: the dataset's columns. `positions`: of each row in its write. `errors`: the reason of each.
        """
        whole = rows.combine_chunks()
        columns = {
            name: pa.concat_arrays(whole.column(name).chunks)
            for name in (whole.column_names if rows.num_rows else ())
        }
        payloads = json_texts(columns, rows.num_rows)
        return self.write(
            [
                BadRecord(position=position, errors=(error,), payload=payload)
                for position, error, payload in zip(positions, errors, payloads, strict=True)
            ],
            path,
        )

    def read(self, file: QuarantineFile, first: int, count: int) -> Generator[BadRecord, None, None]:
        """Records [first, first + count) of a file, a few megabytes at a time. Raises CorruptFile."""
        stream = self._storage.open(file.path)
        verify(file, stream)
        try:
            parquet = pq.ParquetFile(stream)
            if parquet.metadata.num_rows != file.row_count:
                raise CorruptFile(f"{file.path} does not have the recorded rows", path=file.path)
            yield from _records(parquet, first, first + count)
        except (pa.ArrowException, OSError) as error:
            raise fault_of_disk(error, file.path) or CorruptFile(
                f"{file.path} is not a readable Parquet file: {error}", path=file.path
            ) from error


def _table(records: Sequence[BadRecord]) -> pa.Table:
    errors = [msgspec.to_builtins(record.errors) for record in records]
    columns = {
        "position": [record.position for record in records],
        "errors": errors,
        "payload": [record.payload for record in records],
        "header": [record.header for record in records],
    }
    return pa.table([pa.array(columns[field.name], field.type) for field in _SCHEMA], schema=_SCHEMA)


def _records(parquet: pq.ParquetFile, first: int, end: int) -> Iterator[BadRecord]:
    start = 0
    for number in range(parquet.metadata.num_row_groups):
        stop = start + parquet.metadata.row_group(number).num_rows
        if first < stop and start < end:
            group = parquet.read_row_group(number, use_threads=False)
            rows = group.slice(max(first - start, 0), min(end, stop) - max(first, start))
            yield from (msgspec.convert(row, BadRecord) for row in rows.to_pylist())
        start = stop
