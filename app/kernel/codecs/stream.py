"""Decodes an input of any size in steps: one table per step, of at most about 64 Ki rows or 16 MiB."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

from app.kernel.codecs.arrow.arrow_messages import MessageSizes
from app.kernel.codecs.arrow.conform import check_columns, conform_step, steps
from app.kernel.codecs.arrow.parquet_rows import iter_row_groups, joined, open_parquet
from app.kernel.codecs.csv.csv_header import read_header
from app.kernel.codecs.csv.csv_rows import Records
from app.kernel.codecs.faults import Origin, reader_faults
from app.kernel.codecs.json.json_rows import count_rows, iter_array_tables, iter_line_tables, refuse_nothing
from app.kernel.codecs.parts import ANY_MEMORY, PartLimits, PartMemory
from app.kernel.codecs.record_errors import (
    BadRecords,
    InputRejection,
    RecordErrors,
    checked_rows,
    record_errors_for,
)
from app.kernel.codecs.splits import Split
from app.kernel.format.errors import MalformedBody, RowTooLarge, SchemaMismatch
from app.kernel.format.rows.formats import Format, Source
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, RowLimits
from app.kernel.format.schema.schema import Schema

READ_BYTES: Final = 4 << 20
ARROW_FILE_MAGIC: Final = b"ARROW1"
ARROW_FILE_START: Final = 8
_ARROW_END: Final = b"\xff\xff\xff\xff\x00\x00\x00\x00"
_WHOLE: Final = Split()


def iter_tables(
    form: Format,
    source: Source,
    schema: Schema,
    *,
    split: Split = _WHOLE,
    pointer: str = "/rows",
    bad_records: BadRecords | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    explicit_cast: bool = False,
    memory: PartMemory = ANY_MEMORY,
    ignored_fields: set[str] | None = None,
) -> Generator[pa.Table]:
    """The rows of a split in order, in tables of the schema's columns, and `_hw_kept` where changes keep fields; no
    table without rows.

    `source` stays open. Row numbers in pointers are relative to the whole input. `bad_records`: receives the records
    that do not fit; their positions are relative to the whole input, in a split of NDJSON to the split.
    `explicit_cast`: values of columnar input are cast to the types of the schema. `memory`: for large parts of it.
    `ignored_fields`: receives the names of unknown fields, which are ignored where they are null. Raises
    SchemaMismatch, MalformedBody, BodyTooLarge, RowTooLarge, TooManyRows at the first faulty step; then the tables of
    earlier steps must be discarded.
    """
    record_errors = record_errors_for(bad_records, pointer, limits, ignored_fields)
    parts = PartLimits(limits=limits, pointer=pointer, keeps_rows=bad_records is not None, memory=memory)
    match form:
        case Format.NDJSON:
            tables = _iter_ndjson(source, schema, split, pointer, record_errors)
        case Format.CSV:
            tables = _iter_csv(source, schema, pointer, record_errors)
        case Format.ARROW:
            tables = _iter_arrow(source, schema, parts, record_errors, explicit_cast=explicit_cast)
        case Format.PARQUET:
            tables = _iter_parquet(source, schema, split, parts, record_errors, explicit_cast=explicit_cast)
        case Format.JSON_ROWS:
            tables = _iter_json_rows(source, schema, pointer, record_errors)
    return checked_rows(tables, record_errors)


def _iter_json_rows(
    source: Source, schema: Schema, pointer: str, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    source.seek(0)
    raw = source.read()
    refuse_nothing(raw)
    yield from iter_array_tables(raw, schema, pointer, record_errors)


def _iter_ndjson(
    source: Source, schema: Schema, split: Split, pointer: str, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    size = source.seek(0, 2)
    if size == 0:
        raise MalformedBody("the body is empty")
    start, end = split.byte_range or (0, size)
    rows, lines = 0, 1
    line_bytes_max = record_errors.limits.row_bytes_max
    for byte, text in owned_lines(source, start, min(end, size), line_bytes_max):
        origin = Origin(row=rows, line=lines, byte=byte)
        try:
            for table in iter_line_tables(text, schema, origin, record_errors):
                record_errors.raise_if_rejected()
                yield table
        except (SchemaMismatch, MalformedBody, RowTooLarge):
            if start == 0:
                raise
            # Only now are all earlier bytes read, to number the row in the whole input.
            rows_before, lines_before = _count_before(source, byte, line_bytes_max)
            origin = Origin(row=rows_before, line=lines_before + 1, byte=byte)
            refusal = InputRejection(pointer=pointer, limits=record_errors.limits)
            for _ in iter_line_tables(text, schema, origin, refusal):
                refusal.raise_if_rejected()
            raise
        # A record of a change may be two rows or no row, so records are counted separately.
        records = count_rows(text)
        record_errors.count_records(records)
        rows += records
        lines += text.count(b"\n")


def owned_lines(source: Source, start: int, end: int, line_bytes_max: int) -> Iterator[tuple[int, bytes]]:
    """The lines that start in [start, end), in batches, each with the position of its first byte.

    A line that is much longer than the limit is cut one byte behind it.
    """
    at = _first_line(source, start)
    carry = b""
    while at < end:
        source.seek(at + len(carry))
        # Doubling the buffer prevents that a line of any length is copied more than twice.
        chunk = source.read(max(READ_BYTES, len(carry)))
        text = carry + chunk
        if not chunk:
            if text:
                yield at, text
            return
        # The line with the last byte of the range is the last one, and may end behind it.
        last = text.find(b"\n", end - 1 - at) if at + len(text) >= end else -1
        cut = (last if last >= 0 else text.rfind(b"\n")) + 1
        if cut:
            yield at, text[:cut]
        if last >= 0:
            return
        at, carry = at + cut, text[cut:]
        if len(carry) > line_bytes_max:
            yield at, carry[: line_bytes_max + 1] + b"\n"
            at, carry = _first_line(source, at + len(carry) + 1), b""


def _first_line(source: Source, start: int) -> int:
    """The position of the first line that starts at or after `start`."""
    position = max(start - 1, 0)
    source.seek(position)
    while start > 0 and (chunk := source.read(READ_BYTES)):
        end = chunk.find(b"\n")
        if end >= 0:
            return position + end + 1
        position += len(chunk)
    return position


def _count_before(source: Source, end: int, line_bytes_max: int) -> tuple[int, int]:
    """The rows and lines of the NDJSON before the line that starts at `end`."""
    rows = lines = 0
    for _, text in owned_lines(source, 0, end, line_bytes_max):
        rows += count_rows(text)
        lines += text.count(b"\n")
    return rows, lines


def _iter_csv(
    source: Source, schema: Schema, pointer: str, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    source.seek(0)
    text = source.read(READ_BYTES)
    if not text:
        raise MalformedBody("the body is empty")
    header = read_header(text, schema, pointer)
    origin = Origin(line=1 + text.count(b"\n", 0, header.size_bytes), byte=header.size_bytes)
    records = Records(
        header=header, schema=schema, record_errors=record_errors, origin=origin, pointer=pointer
    )
    text = text[header.size_bytes :]
    while True:
        chunk = source.read(max(READ_BYTES, len(text)))
        yield from records.tables(text + chunk, last=not chunk)
        if not chunk:
            return
        text = records.rest


def _iter_arrow(
    source: Source, schema: Schema, parts: PartLimits, record_errors: RecordErrors, *, explicit_cast: bool
) -> Iterator[pa.Table]:
    reader = ArrowReader(source)
    record_errors.ignored_fields.update(
        check_columns(reader.schema, schema, parts.pointer, explicit_cast=explicit_cast)
    )
    start = 0
    for batch in reader.batches(parts):
        for row, step in steps(batch, start, schema, record_errors):
            yield conform_step(step, schema, row, record_errors, explicit_cast=explicit_cast)
        start += batch.num_rows


class ArrowReader:
    """Reads an Arrow IPC stream, or the stream within an Arrow IPC file, as exports write it.

    The footer of a file, which may name its batches in any order, is not used.
    """

    def __init__(self, source: Source) -> None:
        """Raises MalformedBody."""
        self._source = source
        self._is_file = is_arrow_file(source)
        source.seek(ARROW_FILE_START if self._is_file else 0)
        with self._faults():
            self._reader = pa.ipc.open_stream(source)

    @property
    def schema(self) -> pa.Schema:
        """The columns. Raises MalformedBody."""
        with self._faults():
            return self._reader.schema

    def batches(self, parts: PartLimits) -> Iterator[pa.RecordBatch]:
        """The rows in order, once. Raises MalformedBody, RowTooLarge, BodyTooLarge."""
        sizes = MessageSizes(self._source, ARROW_FILE_START if self._is_file else 0)
        while True:
            memory_bytes = 0
            for part in sizes.next_batch():
                parts.check(part)
                memory_bytes += part.memory_bytes
            with parts.memory.holding(memory_bytes):
                with self._faults():
                    try:
                        batch = self._reader.read_next_batch()
                    except StopIteration:
                        break
                yield batch
        _require_end(self._source, is_file=self._is_file)

    def _faults(self) -> AbstractContextManager[None]:
        return reader_faults(f"the Arrow {'file' if self._is_file else 'stream'} cannot be read")


def is_arrow_file(source: Source) -> bool:
    """Whether the input is in the file format of Arrow, not a stream. Raises MalformedBody if it is empty."""
    source.seek(0)
    start = source.read(len(ARROW_FILE_MAGIC))
    if not start:
        raise MalformedBody("the body is empty")
    return start == ARROW_FILE_MAGIC


def _require_end(source: Source, *, is_file: bool) -> None:
    """Raises MalformedBody if the end mark is missing, because then batches may also be missing."""
    end = source.tell()
    source.seek(max(end - len(_ARROW_END), 0))
    if source.read(len(_ARROW_END)) != _ARROW_END:
        raise MalformedBody("the Arrow stream is truncated: its end-of-stream mark is missing")
    if is_file:
        source.seek(max(source.seek(0, 2) - len(ARROW_FILE_MAGIC), end))
        if source.read() != ARROW_FILE_MAGIC:
            raise MalformedBody("the Arrow file is truncated: its end is missing")
    elif source.read(1):
        raise MalformedBody(f"bytes follow the end of the Arrow stream at byte {end}", byte=end)


def _iter_parquet(
    source: Source,
    schema: Schema,
    split: Split,
    parts: PartLimits,
    record_errors: RecordErrors,
    *,
    explicit_cast: bool,
) -> Iterator[pa.Table]:
    file = open_parquet(source)
    with reader_faults("the Parquet file cannot be read"):
        columns, count = file.schema_arrow, file.metadata.num_row_groups
    record_errors.ignored_fields.update(
        check_columns(columns, schema, parts.pointer, explicit_cast=explicit_cast)
    )
    groups = range(count) if split.row_groups is None else split.row_groups
    for start, batch in joined(iter_row_groups(source, file, groups, parts)):
        for row, step in steps(batch, start, schema, record_errors):
            yield conform_step(step, schema, row, record_errors, explicit_cast=explicit_cast)
