"""The live rows of a file group: base files without the rows that their deletion vectors delete."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader, read_row_group, row_groups_with
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import live_mask
from app.kernel.format.rows.meta_columns import resolved
from app.kernel.format.rows.tombstones import dated
from app.kernel.sql.conditions.prune import RowFilter

FILE_COLUMN = "_hw_file"
POSITION_COLUMN = "_hw_position"
SCOPED_COLUMN = "_hw_scoped"
_PLACE = (
    pa.field(FILE_COLUMN, pa.int32(), nullable=False),
    pa.field(POSITION_COLUMN, pa.int64(), nullable=False),
    pa.field(SCOPED_COLUMN, pa.bool_(), nullable=False),
)
PLACE_COLUMNS = tuple(field.name for field in _PLACE)


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """Live rows of one file, in the file's order, with resolved meta columns.

    `file` is the file's number in the slice; -1 for rows that are in no file in this form. `positions`: int64, the
    position in the file of each row.
    """

    file: int
    positions: np.ndarray
    rows: pa.Table

    def at(self, mask: np.ndarray) -> Block:
        """The rows where `mask` (bool, shape (rows,)) is true."""
        if mask.all():
            return self
        return Block(file=self.file, positions=self.positions[mask], rows=self.rows.filter(pa.array(mask)))

    def placed(self, in_scope: np.ndarray) -> pa.Table:
        """The rows with file, position, and whether each is in the scope of a write."""
        files = np.full(self.rows.num_rows, self.file, dtype=np.int32)
        table = self.rows
        for field, values in zip(_PLACE, (files, self.positions, in_scope), strict=True):
            table = table.append_column(field, pa.array(values))
        return table


@dataclass(frozen=True, slots=True)
class SliceReader:
    """Reads base files block by block, a row group at a time."""

    reader: ParquetReader
    vectors: VectorReader

    def blocks(
        self,
        files: Sequence[DataFile],
        schema: pa.Schema,
        numbers: Iterable[int] | None = None,
        row_filter: RowFilter | None = None,
    ) -> Iterator[Block]:
        """The live rows of the files (of those with these numbers, unless None). Raises CorruptFile.

        `schema`: the columns to read; meta columns among them are resolved. `row_filter`: row groups that certainly
        have no matching row are omitted; of other groups all rows are returned.
        """
        for number in range(len(files)) if numbers is None else numbers:
            yield from self._of_file(files[number], number, schema, row_filter)

    def _of_file(
        self, file: DataFile, number: int, schema: pa.Schema, row_filter: RowFilter | None
    ) -> Iterator[Block]:
        deletions = None if file.deletion_vector is None else self.vectors.read(file.deletion_vector)
        first = 0
        parquet = self.reader.open(file)
        metadata, group_numbers = parquet.metadata, set(row_groups_with(parquet, row_filter))
        for group in range(metadata.num_row_groups):
            if group not in group_numbers:
                first += metadata.row_group(group).num_rows
                continue
            rows = read_row_group(parquet, group, schema)
            rows = dated(resolved(rows, file.written_version, file.first_offset), file.written_at)
            block = Block(file=number, positions=np.arange(first, first + rows.num_rows), rows=rows)
            first += rows.num_rows
            if deletions is not None:
                block = block.at(live_mask(deletions, first - rows.num_rows, rows.num_rows))
            if block.rows.num_rows:
                yield block
