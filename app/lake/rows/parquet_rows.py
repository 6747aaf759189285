"""Reading Parquet that strangers wrote, in steps of bounded size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from app.lake.errors import MalformedBody
from app.lake.rows.faults import reader_faults
from app.lake.rows.formats import Source

# A dictionary value of a megabyte takes a bit per row in the file and a megabyte per row in memory.
_EXPANDED_BYTES_MAX: Final = 64 << 20
# Steps this small cost nothing: the reader is as fast as with large ones.
_READ_ROWS_MAX: Final = 1_024
# Dictionaries below this cannot expand to anything that matters, and need no look.
_SMALL_DICTIONARY_BYTES: Final = 4 << 10
_JOINED_ROWS: Final = 32_768
_JOINED_BYTES: Final = 8 << 20
_DICTIONARY_PAGE: Final = 2
_PAGE_HEADER_BYTES: Final = 32


def open_parquet(source: Source) -> pq.ParquetFile:
    """The file with its footer read. `source` must be seekable. Raises MalformedBody."""
    with reader_faults("the Parquet file cannot be read"):
        _check_magic(source)
        return pq.ParquetFile(source, pre_buffer=False, page_checksum_verification=True)


def rows_before(metadata: pq.FileMetaData, row_group: int) -> int:
    """How many rows the row groups before this one have."""
    return sum(metadata.row_group(number).num_rows for number in range(row_group))


def iter_row_groups(
    source: Source, file: pq.ParquetFile, row_groups: Sequence[int]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Small record batches of the row groups, each with the number of its first row. Raises MalformedBody."""
    for number in row_groups:
        with reader_faults("the Parquet file cannot be read"):
            row = rows_before(file.metadata, number)
            step = _rows_per_read(source, file.metadata, number)
        for batch in _batches(file, number, step):
            yield row, batch
            row += batch.num_rows


def joined(batches: Iterable[tuple[int, pa.RecordBatch]]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The same rows in fewer, larger batches; those with dictionaries stay as they are."""
    held: list[pa.RecordBatch] = []
    held_rows = held_bytes = 0
    for row, batch in batches:
        if held and (
            held_rows >= _JOINED_ROWS or held_bytes >= _JOINED_BYTES or _has_dictionary(batch.schema)
        ):
            yield row - held_rows, pa.concat_batches(held)
            held, held_rows, held_bytes = [], 0, 0
        held.append(batch)
        held_rows += batch.num_rows
        held_bytes += batch.nbytes
        end = row + batch.num_rows
    if held:
        yield end - held_rows, pa.concat_batches(held)


def _has_dictionary(schema: pa.Schema) -> bool:
    return any("dictionary" in str(field.type) for field in schema)


def _batches(file: pq.ParquetFile, row_group: int, rows: int) -> Iterator[pa.RecordBatch]:
    with reader_faults(f"row group {row_group} of the Parquet file cannot be read"):
        batches = file.iter_batches(batch_size=rows, row_groups=[row_group], use_threads=False)
    read = 0
    while True:
        with reader_faults(f"row group {row_group} of the Parquet file cannot be read"):
            batch = next(batches, None)
        if batch is None:
            break
        read += batch.num_rows
        yield batch
    promised = file.metadata.row_group(row_group).num_rows
    if read != promised:
        raise MalformedBody(
            f"row group {row_group} of the Parquet file has {read} rows, its footer says {promised}"
        )


def _check_magic(source: Source) -> None:
    source.seek(0)
    start = source.read(4)
    source.seek(0)
    if start == b"PARE":
        raise MalformedBody("the Parquet file is encrypted")
    if start != b"PAR1":
        raise MalformedBody("the body is not a Parquet file: it does not start with PAR1")


def _rows_per_read(source: Source, metadata: pq.FileMetaData, row_group: int) -> int:
    """How many rows can be read at once if each of them holds the largest value there could be."""
    group = metadata.row_group(row_group)
    largest = 1
    for number in range(group.num_columns):
        column = group.column(number)
        if column.physical_type == "BYTE_ARRAY":
            largest += _value_bytes_max(source, metadata, row_group, column)
    return max(1, min(_READ_ROWS_MAX, _EXPANDED_BYTES_MAX // largest))


def _value_bytes_max(
    source: Source, metadata: pq.FileMetaData, row_group: int, column: pq.ColumnChunkMetaData
) -> int:
    """How large one value can be that takes next to no bytes of its own."""
    if "DELTA_BYTE_ARRAY" in column.encodings:
        # A value may share all of the one before it.
        return max(int(column.total_uncompressed_size), 0)
    # Some writers give the dictionary page no offset of its own and let the data pages start with it.
    first_page = min(column.dictionary_page_offset or column.data_page_offset, column.data_page_offset)
    if not 0 < first_page < source.seek(0, 2):
        raise MalformedBody("the Parquet file cannot be read: a column starts outside the file")
    source.seek(first_page)
    size = _dictionary_page_bytes(source.read(_PAGE_HEADER_BYTES))
    if size <= _SMALL_DICTIONARY_BYTES:
        return size
    return min(size, _largest_dictionary_value(source, metadata, row_group, column.path_in_schema))


def _largest_dictionary_value(source: Source, metadata: pq.FileMetaData, row_group: int, path: str) -> int:
    """The bytes of the largest value in the dictionary, which the first row brings along whole."""
    file = pq.ParquetFile(source, metadata=metadata, read_dictionary=[path], pre_buffer=False)
    first = next(
        file.iter_batches(batch_size=1, row_groups=[row_group], columns=[path], use_threads=False), None
    )
    return (
        0 if first is None else max((_dictionary_value_bytes(column) for column in first.columns), default=0)
    )


def _dictionary_value_bytes(array: pa.Array) -> int:
    if pa.types.is_dictionary(array.type):
        return int(pc.max(pc.binary_length(array.dictionary)).as_py() or 0)
    if pa.types.is_struct(array.type):
        return max((_dictionary_value_bytes(child) for child in array.flatten()), default=0)
    if pa.types.is_map(array.type):
        return max(_dictionary_value_bytes(array.keys), _dictionary_value_bytes(array.items))
    return _dictionary_value_bytes(array.values) if pa.types.is_nested(array.type) else 0


def _dictionary_page_bytes(header: bytes) -> int:
    """The uncompressed size of the page if it is a dictionary page, else 0.

    The header is a Thrift struct in compact form; its first members are the type and the uncompressed size.
    """
    kind, position = _i32_member(header, 0)
    size, _ = _i32_member(header, position)
    return size if kind == _DICTIONARY_PAGE else 0


def _i32_member(header: bytes, position: int) -> tuple[int, int]:
    if header[position : position + 1] != b"\x15":
        raise MalformedBody("the Parquet file cannot be read: a page has no valid header")
    value = shift = 0
    for octet in header[position + 1 : position + 6]:
        position += 1
        value |= (octet & 0x7F) << shift
        shift += 7
        if octet < 0x80:
            break
    return (value >> 1) ^ -(value & 1), position + 1
