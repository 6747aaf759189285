"""Log files: writes that are stored beside the base files, to be merged on read or at compaction.

A log has the unmerged rows of one commit and file group: `_hw_op`, the dataset's columns, `_hw_row`, `_hw_job` (the
write within the commit), and the meta columns. `_hw_op` is the op of the write, or PUT for a row that was merged when
it was written and replaces the live row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from app.infra.files.parquet_file import ParquetReader, read_row_group
from app.infra.files.slices.incoming import Incoming, incoming_schema
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import META_FIELDS, resolved
from app.kernel.format.rows.staging import JOB_COLUMN

PUT: Final = 4
_MERGES: Final = WriteIntent(operation=Operation.CHANGELOG)
_PUTS: Final = WriteIntent(operation=Operation.OVERWRITE)


def log_schema(dataset: DatasetDefinition) -> pa.Schema:
    """The columns of a log file."""
    return pa.schema([*incoming_schema(dataset), *META_FIELDS])


def logged(reader: ParquetReader, dataset: DatasetDefinition, logs: Sequence[DataFile]) -> Incoming:
    """The writes in these logs, in the order of their commits, as rows to merge with the base files."""
    intents: dict[int, WriteIntent] = {}
    return Incoming(
        tables=_Tables(reader, dataset, logs, intents),
        intents=intents,
        rows=sum(file.row_count for file in logs),
        committed=True,
    )


class _Tables:
    """The rows of logs. While they are read, their writes are numbered and added to `intents`."""

    def __init__(
        self,
        reader: ParquetReader,
        dataset: DatasetDefinition,
        logs: Sequence[DataFile],
        intents: dict[int, WriteIntent],
    ) -> None:
        self._reader = reader
        self._dataset = dataset
        self._logs = logs
        self._intents = intents

    def __iter__(self) -> Iterator[pa.Table]:
        """The tables of all logs. Raises CorruptFile."""
        schema = log_schema(self._dataset)
        first = 0
        for file in self._logs:
            last = first - 1
            parquet = self._reader.open(file)
            for group in range(parquet.metadata.num_row_groups):
                rows = resolved(
                    read_row_group(parquet, group, schema), file.written_version, file.first_offset
                )
                numbered_rows = self._numbered(rows, first)
                last = max(last, int(numbered_rows.column(JOB_COLUMN).to_numpy().max(initial=-1)))
                yield numbered_rows
            first = last + 1

    def _numbered(self, rows: pa.Table, first: int) -> pa.Table:
        # Two numbers for each write of the log: rows to merge, and rows that replace live rows.
        ops = rows.column(OP_COLUMN).to_numpy()
        puts = ops == PUT
        jobs = first + 2 * rows.column(JOB_COLUMN).to_numpy().astype(np.int64) + puts
        for job in np.unique(jobs):
            self._intents[int(job)] = _PUTS if (job - first) % 2 else _MERGES
        rows = rows.set_column(
            rows.schema.get_field_index(OP_COLUMN),
            OP_FIELD,
            pa.array(np.where(puts, Op.APPEND, ops), pa.uint8()),
        )
        at = rows.schema.get_field_index(JOB_COLUMN)
        return rows.set_column(at, rows.schema.field(at), pa.array(jobs, pa.int32()))
