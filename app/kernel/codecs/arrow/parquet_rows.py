"""Reads Parquet files of clients in steps of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.kernel.codecs.arrow.int96 import int96_columns, with_whole_times
from app.kernel.codecs.arrow.parquet_pages import large_pages
from app.kernel.codecs.faults import mismatch, reader_faults, shown
from app.kernel.codecs.parts import ANY_PARTS, PART_BYTES_MIN, PartLimits
from app.kernel.format.errors import MalformedBody
from app.kernel.format.rows.formats import Source
from app.kernel.format.schema.types import Form, foreign_kind

# A dictionary value of a megabyte takes a bit per row in the file and a megabyte per row in memory.
_EXPANDED_BYTES_MAX: Final = 64 << 20
# Rows of any size are read in such steps, which cost the reader nothing, but have to be joined.
_READ_ROWS: Final = 1_024
_REPEATED_BYTES_MAX: Final = 1_024
_JOINED_ROWS: Final = 32_768
_JOINED_BYTES: Final = 8 << 20
_PROBE_BUFFER_BYTES: Final = 64 << 10
_INTERVAL: Final = "INTERVAL"


class _Text(msgspec.Struct, frozen=True, kw_only=True):
    """A text or binary column of a row group, and the greatest size of a value that takes almost no file space."""

    path: str
    repeats: bool
    in_dictionary: int
    shared_bytes: int


def open_parquet(source: Source) -> pq.ParquetFile:
    """The file with its footer read. `source` must be seekable. Raises MalformedBody, SchemaMismatch for a column of
    a type that no column has, which Arrow reads as bytes.
    """
    with reader_faults("the Parquet file cannot be read"):
        _check_magic(source)
        file = pq.ParquetFile(source, pre_buffer=False, coerce_int96_timestamp_unit="us")
        intervals = [column.path for column in _columns(file) if column.converted_type == _INTERVAL]
    if intervals:
        kind = foreign_kind(Form.PARQUET, _INTERVAL)
        reason = "" if kind is None else f": {kind.refused}"
        mismatch("/rows", f"column {shown(intervals[0])} is of Parquet type {_INTERVAL}{reason}")
    return file


def rows_before(metadata: pq.FileMetaData, row_group: int) -> int:
    """The number of rows in the row groups before this one."""
    return sum(metadata.row_group(number).num_rows for number in range(row_group))


def iter_row_groups(
    source: Source, file: pq.ParquetFile, row_groups: Sequence[int], parts: PartLimits = ANY_PARTS
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Small record batches of the row groups, each with the number of its first row.

    Raises MalformedBody, RowTooLarge, BodyTooLarge.
    """
    times = int96_columns(file)
    for number in row_groups:
        with reader_faults("the Parquet file cannot be read"):
            row = rows_before(file.metadata, number)
            memory_bytes = _checked_memory(source, file, number, row, parts)
        with parts.memory.holding(memory_bytes):
            with reader_faults("the Parquet file cannot be read"):
                texts = _texts(source, file, number)
                reader = _reader(source, file, texts)
                largest_row = 1 + sum(text.in_dictionary + text.shared_bytes for text in texts)
                step = max(
                    1, min(_rows_at_once(file.metadata.row_group(number)), _EXPANDED_BYTES_MAX // largest_row)
                )
            batches = _batches(reader, number, step)
            if times:
                in_nanos = pq.ParquetFile(source, metadata=file.metadata, pre_buffer=False)
                batches = with_whole_times(batches, _batches(in_nanos, number, step, times))
            for batch in batches:
                yield row, batch
                row += batch.num_rows


def _checked_memory(
    source: Source, file: pq.ParquetFile, row_group: int, first_row: int, parts: PartLimits
) -> int:
    """The memory for the largest pages of all columns, as far as they are large. Raises RowTooLarge, BodyTooLarge."""
    if file.metadata.row_group(row_group).total_byte_size <= PART_BYTES_MIN:
        return 0
    flat = frozenset(column.path for column in _columns(file) if not column.max_repetition_level)
    memory: dict[str, int] = {}
    for page in large_pages(source, row_group, first_row, flat):
        parts.check(page)
        memory[page.name] = max(memory.get(page.name, 0), page.memory_bytes)
    return sum(memory.values())


def _rows_at_once(group: pq.RowGroupMetaData) -> int:
    """The rows to read in one step: those of a joined batch, if the footer states the size of the rows."""
    rows, size = int(group.num_rows), int(group.total_byte_size)
    fitting = _JOINED_BYTES * rows // max(size, 1)
    return max(_READ_ROWS, min(fitting, _JOINED_ROWS))


def joined(batches: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The same rows in fewer, larger batches; batches with dictionaries are unchanged."""
    pending: list[pa.RecordBatch] = []
    pending_rows = pending_bytes = 0
    for row, batch in batches:
        if pending and (
            pending_rows >= _JOINED_ROWS
            or pending_bytes >= _JOINED_BYTES
            or _has_dictionary(batch.schema)
            # The one before has dictionaries: each row group has its own columns with them.
            or batch.schema != pending[-1].schema
        ):
            yield row - pending_rows, _one(pending)
            pending, pending_rows, pending_bytes = [], 0, 0
        pending.append(batch)
        pending_rows += batch.num_rows
        pending_bytes += batch.nbytes
        end = row + batch.num_rows
    if pending:
        yield end - pending_rows, _one(pending)


def _one(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _has_dictionary(schema: pa.Schema) -> bool:
    return any("dictionary" in str(field.type) for field in schema)


def _batches(
    file: pq.ParquetFile, row_group: int, rows: int, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    with reader_faults(f"row group {row_group} of the Parquet file cannot be read"):
        batches = file.iter_batches(
            batch_size=rows, row_groups=[row_group], columns=columns, use_threads=False
        )
    row_count = 0
    while True:
        with reader_faults(f"row group {row_group} of the Parquet file cannot be read"):
            batch = next(batches, None)
        if batch is None:
            break
        row_count += batch.num_rows
        yield batch
    footer_rows = file.metadata.row_group(row_group).num_rows
    if row_count != footer_rows:
        raise MalformedBody(
            f"row group {row_group} of the Parquet file has {row_count} rows, but its footer has {footer_rows}"
        )


def _check_magic(source: Source) -> None:
    source.seek(0)
    start = source.read(4)
    source.seek(0)
    if start == b"PARE":
        raise MalformedBody("the Parquet file is encrypted")
    if start != b"PAR1":
        raise MalformedBody("the body is not a Parquet file: it does not start with PAR1")


def _reader(source: Source, file: pq.ParquetFile, texts: Sequence[_Text]) -> pq.ParquetFile:
    """The file, set to keep large texts in lists as dictionaries, since a row may repeat them without limit."""
    return pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=[
            text.path for text in texts if text.repeats and text.in_dictionary > _REPEATED_BYTES_MAX
        ],
        pre_buffer=False,
        page_checksum_verification=True,
        # A day of INT96 may be beyond what microseconds reach.
        coerce_int96_timestamp_unit="ms",
    )


def _texts(source: Source, file: pq.ParquetFile, row_group: int) -> list[_Text]:
    """The text and binary columns, and the possible size of their values."""
    probe = pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=[column.path for column in _columns(file)],
        pre_buffer=False,
        buffer_size=_PROBE_BUFFER_BYTES,
    )
    return [
        _text(probe, row_group, number, column)
        for number, column in enumerate(_columns(file))
        if column.physical_type == "BYTE_ARRAY"
    ]


def _text(probe: pq.ParquetFile, row_group: int, number: int, column: pq.ColumnSchema) -> _Text:
    repeats = column.max_repetition_level > 0
    rows = probe.iter_batches(batch_size=1, row_groups=[row_group], columns=[column.path], use_threads=False)
    try:
        # The first row loads the whole dictionary.
        first = next(rows, None)
    except OSError as fault:
        if "Not yet implemented" not in str(fault):
            raise
        # There is no dictionary. The metadata is only read now, because it crashes the process for a damaged column.
        chunk = probe.metadata.row_group(row_group).column(number)
        # A value may share all of the one before it.
        shared_bytes = (
            max(int(chunk.total_uncompressed_size), 0) if "DELTA_BYTE_ARRAY" in chunk.encodings else 0
        )
        return _Text(path=column.path, repeats=repeats, in_dictionary=0, shared_bytes=shared_bytes)
    largest = max((_dictionary_value_bytes(array) for array in first.columns), default=0) if first else 0
    return _Text(path=column.path, repeats=repeats, in_dictionary=largest, shared_bytes=0)


def _columns(file: pq.ParquetFile) -> list[pq.ColumnSchema]:
    return [file.schema.column(number) for number in range(file.metadata.num_columns)]


def _dictionary_value_bytes(array: pa.Array) -> int:
    if pa.types.is_dictionary(array.type):
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return max((_dictionary_value_bytes(child) for child in array.flatten()), default=0)
    if pa.types.is_map(array.type):
        return max(_dictionary_value_bytes(array.keys), _dictionary_value_bytes(array.items))
    return _dictionary_value_bytes(array.values) if pa.types.is_nested(array.type) else 0
