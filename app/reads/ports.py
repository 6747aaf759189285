"""The interface of reads to the files of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import pyarrow as pa

from app.format.dataset import DatasetDefinition
from app.format.file_group import DataFile
from app.sql.conditions.prune import Sought


class TableReaderPort(Protocol):
    """Reads the rows of a table as readers see them."""

    def read_group(
        self,
        dataset: DatasetDefinition,
        files: Sequence[DataFile],
        schema: pa.Schema,
        first_row: int,
        rows: int,
        bytes_max: int,
    ) -> pa.Table:
        """Live rows [first_row, first_row + rows) of a file group, logs merged in: fewer where it ends, and fewer, but
        at least one, of `bytes_max` bytes or more.

        `files`: the group's, in order of their commits. `schema`: columns of the dataset, stored meta columns, and
        those derived of the file. Rows have the same numbers each time. Raises CorruptFile.
        """
        ...

    def row_ranges(
        self, files: Sequence[DataFile], sought: Sought, first_row: int, end: int | None
    ) -> Iterable[tuple[int, int | None]]:
        """Ranges [first, end) of live rows [first_row, end) of a group that may have sought rows, in order.

        An end of None is that of the group. A file that was opened but has no such rows yields an empty range. Files
        are opened one by one, as the ranges are consumed. Raises CorruptFile.
        """
        ...
