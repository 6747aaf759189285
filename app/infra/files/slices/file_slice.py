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
from app.kernel.sql.conditions.prune import Sought

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

    def at(self, chosen: np.ndarray) -> Block:
        """The rows where `chosen` (bool, shape (rows,)) is true."""
        if chosen.all():
            return self
        return Block(
            file=self.file, positions=self.positions[chosen], rows=self.rows.filter(pa.array(chosen))
        )

    def placed(self, scoped: np.ndarray) -> pa.Table:
        """The rows with file, position, and whether each is in the scope of a write."""
        files = np.full(self.rows.num_rows, self.file, dtype=np.int32)
        table = self.rows
        for field, values in zip(_PLACE, (files, self.positions, scoped), strict=True):
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
        sought: Sought | None = None,
    ) -> Iterator[Block]:
        """The live rows of the files (of those with these numbers, unless None). Raises CorruptFile.

        `schema`: the columns to read; meta columns among them are resolved. `sought`: row groups that certainly have
        none of these rows are omitted; of other groups all rows are returned.
        """
        for number in range(len(files)) if numbers is None else numbers:
            yield from self._of_file(files[number], number, schema, sought)

    def _of_file(
        self, file: DataFile, number: int, schema: pa.Schema, sought: Sought | None
    ) -> Iterator[Block]:
        gone = None if file.deletion_vector is None else self.vectors.read(file.deletion_vector)
        first = 0
        parquet = self.reader.open(file)
        metadata, chosen = parquet.metadata, set(row_groups_with(parquet, sought))
        for group in range(metadata.num_row_groups):
            if group not in chosen:
                first += metadata.row_group(group).num_rows
                continue
            rows = read_row_group(parquet, group, schema)
            rows = resolved(rows, file.written_version, file.first_offset)
            block = Block(file=number, positions=np.arange(first, first + rows.num_rows), rows=rows)
            first += rows.num_rows
            if gone is not None:
                block = block.at(live_mask(gone, first - rows.num_rows, rows.num_rows))
            if block.rows.num_rows:
                yield block
