"""Streams of requested rows of a table: a row group at a time, and only groups that may have such rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.commit.read_plan import in_globs
from app.files.slices.file_slice import SliceReader
from app.files.slices.memory_budget import MemoryBudget
from app.files.slices.merged_slice import merged_blocks
from app.format.dataset import BucketMode, DatasetDefinition
from app.format.file_group import DataFile
from app.format.index.deletion_vector import live_mask
from app.format.partition.codes import partition_codes
from app.sql.conditions.evaluate import matches
from app.sql.conditions.tree import Filter


def base_rows(
    slices: SliceReader,
    dataset: DatasetDefinition,
    file: DataFile,
    schema: pa.Schema,
    where: Filter | None,
    first: int,
    end: int,
) -> Iterator[pa.Table]:
    """The live ones of rows [first, end) of a base file that match the filter. Raises CorruptFile.

    `schema`: some columns of the dataset, nullable. The columns of the filter are read first, the others only where a
    row matches.
    """
    deciding = [] if where is None else [field for field in schema if field.name in where.columns()]
    others = pa.schema([field for field in schema if field not in deciding])
    # The filter may name columns that are not returned.
    decides = _columns(dataset, where)
    gone = None if file.deletion_vector is None else slices.vectors.read(file.deletion_vector)
    for begin, stop in _row_ranges(slices, dataset, file, where, first, end):
        chosen = (
            np.ones(stop - begin, dtype=np.bool_) if gone is None else live_mask(gone, begin, stop - begin)
        )
        known = None
        if where is not None:
            known = (
                slices.reader.read_slice(file, decides, begin, stop - begin)
                if len(decides)
                # A filter without columns has the same result for all rows, which must still be counted.
                else pa.table({"": pa.nulls(stop - begin)})
            )
            chosen = chosen & matches(where, known)
        if not chosen.any():
            continue
        rows = slices.reader.read_slice(file, others, begin, stop - begin)
        columns = [
            known.column(field.name) if known is not None and field in deciding else rows.column(field.name)
            for field in schema
        ]
        found = pa.table(columns, schema=schema)
        yield found if chosen.all() else found.filter(pa.array(chosen))


def merged_rows(
    slices: SliceReader,
    dataset: DatasetDefinition,
    files: Sequence[DataFile],
    schema: pa.Schema,
    where: Filter | None,
    partitions: Sequence[str] | None,
    memory: MemoryBudget,
) -> Iterator[pa.Table]:
    """The rows of a file group with logs that match the filter, and whose partition matches one of the globs.

    `files`: in the order of their commits. `schema`: some columns of the dataset, nullable. Raises CorruptFile.
    """
    by_row = partitions is not None and dataset.bucket.mode is BucketMode.KEY_DYNAMIC
    for block in merged_blocks(slices, dataset, files, memory):
        chosen: npt.NDArray[np.bool_] = np.ones(block.rows.num_rows, dtype=np.bool_)
        if where is not None:
            chosen &= matches(where, block.rows)
        if by_row:
            codes, paths = partition_codes(block.rows, dataset.partition_by)
            path_matches = [in_globs(path, partitions or ()) for path in paths]
            chosen &= np.array(path_matches, dtype=np.bool_)[codes]
        if chosen.any():
            yield block.rows.filter(pa.array(chosen)).select(schema.names).cast(schema)


def _columns(dataset: DatasetDefinition, where: Filter | None) -> pa.Schema:
    names = where.columns() if where is not None else ()
    fields = [field for field in dataset.schema.to_arrow() if field.name in names]
    return pa.schema([field.with_nullable(True) for field in fields])


def _row_ranges(
    slices: SliceReader,
    dataset: DatasetDefinition,
    file: DataFile,
    where: Filter | None,
    first: int,
    end: int,
) -> Iterator[tuple[int, int]]:
    """The parts of the file, by row group, in which some of the rows [first, end) may match."""
    if where is not None:
        yield from slices.reader.row_ranges(file, where, dataset.schema, first, end - first)
        return
    metadata = slices.reader.open(file).metadata
    start = 0
    for number in range(metadata.num_row_groups):
        stop = start + metadata.row_group(number).num_rows
        if max(first, start) < min(end, stop):
            yield max(first, start), min(end, stop)
        start = stop
