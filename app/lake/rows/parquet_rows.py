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
_REPEATED_BYTES_MAX: Final = 1_024
_JOINED_ROWS: Final = 32_768
_JOINED_BYTES: Final = 8 << 20
_PROBE_BUFFER_BYTES: Final = 64 << 10


def open_parquet(source: Source) -> pq.ParquetFile:
    """The file with its footer read. `source` must be seekable. Raises MalformedBody."""
    with reader_faults("the Parquet file cannot be read"):
        _check_magic(source)
        return pq.ParquetFile(source, pre_buffer=False)


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
            values = _largest_values(source, file, number)
            reader = _reader(source, file, values)
            step = max(1, min(_READ_ROWS_MAX, _EXPANDED_BYTES_MAX // max(1, sum(values.values()))))
        for batch in _batches(reader, number, step):
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


def _reader(source: Source, file: pq.ParquetFile, values: dict[str, int]) -> pq.ParquetFile:
    """The file, set to leave large texts in lists in their dictionaries: a row may repeat them at will."""
    lists = [column.path for column in _columns(file) if column.max_repetition_level > 0]
    nested = {field.name for field in file.schema_arrow if pa.types.is_nested(field.type)}
    keep = any(size > _REPEATED_BYTES_MAX and name in nested for name, size in values.items())
    return pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=lists if keep else [],
        pre_buffer=False,
        page_checksum_verification=True,
    )


def _largest_values(source: Source, file: pq.ParquetFile, row_group: int) -> dict[str, int]:
    """How large a value of each column can be that takes next to no bytes of its own."""
    columns = _columns(file)
    probe = pq.ParquetFile(
        source,
        metadata=file.metadata,
        read_dictionary=[column.path for column in columns if column.physical_type == "BYTE_ARRAY"],
        pre_buffer=False,
        buffer_size=_PROBE_BUFFER_BYTES,
    )
    # The first row brings along the dictionaries, whole.
    first = next(probe.iter_batches(batch_size=1, row_groups=[row_group], use_threads=False), None)
    if first is None:
        return {}
    largest = {
        name: _dictionary_value_bytes(array)
        for name, array in zip(first.schema.names, first.columns, strict=True)
    }
    # Asking the metadata of a damaged file for a column ends the process, unless a read of it has succeeded.
    group = file.metadata.row_group(row_group)
    for number, column in enumerate(columns):
        if column.physical_type == "BYTE_ARRAY" and "DELTA_BYTE_ARRAY" in group.column(number).encodings:
            # A value may share all of the one before it.
            largest[f"prefixes of {column.path}"] = max(int(group.column(number).total_uncompressed_size), 0)
    return largest


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
