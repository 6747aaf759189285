"""Streams of requested rows of a table: a row group at a time, and only groups that may have such rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import FrozenBitMap

from app.infra.files.parquet_file import FileColumns, OpenedFile
from app.infra.files.slices.derived_columns import block_rows, of_file
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.kernel.commit.read_plan import in_globs
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import live_mask
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.rows.meta_columns import DERIVED_NAMES, META_FIELDS, VERSION_COLUMN, resolved
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.tree import Filter


@dataclass(frozen=True, kw_only=True, slots=True)
class RowChoice:
    """The rows to return: those that match `where`, and that a commit after the version `changed_after` gave their
    values. None selects all.
    """

    where: Filter | None = None
    changed_after: int | None = None

    @property
    def selects(self) -> bool:
        """Whether some rows may not be chosen."""
        return self.where is not None or self.changed_after is not None

    def columns(self, dataset: DatasetDefinition) -> pa.Schema:
        """The columns that decide, which need not be among those that are returned; nullable."""
        names = self.where.columns() if self.where is not None else ()
        fields = [field for field in dataset.schema.to_arrow() if field.name in names]
        versions = [] if self.changed_after is None else [META_FIELDS[0]]
        return pa.schema([*(field.with_nullable(True) for field in fields), *versions])

    def chosen(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Whether each row is chosen: shape (rows,). `rows`: the deciding columns, versions resolved."""
        mask: npt.NDArray[np.bool_] = np.ones(rows.num_rows, dtype=np.bool_)
        if self.where is not None:
            mask &= matches(self.where, rows)
        if self.changed_after is not None:
            mask &= pc.greater(rows.column(VERSION_COLUMN), self.changed_after).to_numpy()
        return mask


def base_rows(
    slices: SliceReader,
    dataset: DatasetDefinition,
    file: DataFile,
    schema: pa.Schema,
    choice: RowChoice,
    first: int,
    end: int,
) -> Iterator[pa.Table]:
    """The chosen ones of the live rows [first, end) of a base file. Raises CorruptFile.

    `schema`: some columns of the dataset, nullable, stored meta columns, and those derived from the file. The columns
    that decide are read first, the others only where a row is chosen. Texts that the file stores in dictionaries are
    returned as such.
    """
    open_file = slices.reader.opened(file)
    ranges = list(_row_ranges(open_file, dataset, choice.where, first, end))
    if not ranges:
        return
    # Columns that decide need not be returned.
    decides = open_file.with_dictionaries(choice.columns(dataset))
    others = pa.schema([field for field in schema if field.name not in (*decides.names, *DERIVED_NAMES)])
    deletions = None if file.deletion_vector is None else slices.vectors.read(file.deletion_vector)
    deciding = open_file.columns(decides) if len(decides) else None
    other: FileColumns | None = None
    for begin, stop in ranges:
        count = stop - begin
        # A filter without columns has the same result for all rows, which must still be counted.
        rows = pa.table({"": pa.nulls(count)})
        if deciding is not None:
            rows = resolved(deciding.read(begin, count), file.written_version, file.first_offset)
        mask = _live_mask(deletions, begin, count)
        if choice.selects:
            mask = mask & choice.chosen(rows)
        if not mask.any():
            continue
        if other is None:
            other = open_file.columns(open_file.with_dictionaries(others))
        other_rows = resolved(other.read(begin, count), file.written_version, file.first_offset)
        columns_by_name = {**_columns(other_rows), **_columns(rows), **of_file(file, count, schema)}
        columns = [columns_by_name[name] for name in schema.names]
        kinds = [field.with_type(column.type) for field, column in zip(schema, columns, strict=True)]
        table = pa.table(columns, schema=pa.schema(kinds))
        yield table if mask.all() else table.filter(pa.array(mask))


def _live_mask(deletions: FrozenBitMap | None, begin: int, count: int) -> npt.NDArray[np.bool_]:
    """Whether each of `count` rows from `begin` on is live: shape (count,)."""
    return np.ones(count, dtype=np.bool_) if deletions is None else live_mask(deletions, begin, count)


def _columns(rows: pa.Table) -> dict[str, pa.ChunkedArray]:
    return dict(zip(rows.column_names, rows.columns, strict=True))


def merged_rows(
    slices: SliceReader,
    dataset: DatasetDefinition,
    files: Sequence[DataFile],
    schema: pa.Schema,
    choice: RowChoice,
    partitions: Sequence[str] | None,
    memory: MemoryBudget,
) -> Iterator[pa.Table]:
    """The chosen rows of a file group with logs, whose partition matches one of the globs.

    `files`: in the order of their commits. `schema`: some columns of the dataset, nullable, stored meta columns, and
    those derived from the file. Raises CorruptFile.
    """
    by_row = partitions is not None and dataset.bucket.mode is BucketMode.KEY_DYNAMIC
    for block in merged_blocks(slices, dataset, files, memory):
        mask = choice.chosen(block.rows)
        if by_row:
            codes, paths = partition_codes(block.rows, dataset.partition_by)
            path_matches = [in_globs(path, partitions or ()) for path in paths]
            mask &= np.array(path_matches, dtype=np.bool_)[codes]
        if mask.any():
            yield block_rows(block.at(mask), dataset, files, schema)


def _row_ranges(
    open_file: OpenedFile, dataset: DatasetDefinition, where: Filter | None, first: int, end: int
) -> Iterator[tuple[int, int]]:
    """The parts of the file, by row group, in which some of the rows [first, end) may match."""
    if where is not None:
        yield from open_file.row_ranges(where, dataset.schema, first, end - first)
        return
    for start, stop in open_file.row_group_bounds():
        if max(first, start) < min(end, stop):
            yield max(first, start), min(end, stop)
