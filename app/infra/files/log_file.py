"""Log files: writes that are stored beside the base files, to be merged on read or at compaction.

A log has the unmerged rows of one commit and file group: `_hw_op`, the dataset's columns, `_hw_kept` if it has changes,
`_hw_row`, `_hw_job` (the write within the commit), the meta columns, and `_hw_keep_seconds`: how long the tombstones of
the write's deletes last.
`_hw_op` is the op of the write; with BY_ARRIVAL added, the row is applied whatever the ordering values: a fact, or the
result of a merge at write time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa

from app.infra.files.parquet_file import ParquetReader, read_row_group
from app.infra.files.slices.incoming import Incoming, incoming_schema
from app.kernel.commit.write_plan import WriteIntent
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.kept_fields import KEPT_COLUMN
from app.kernel.format.rows.meta_columns import META_FIELDS, resolved
from app.kernel.format.rows.staging import JOB_COLUMN
from app.kernel.format.rows.tombstones import KEEP_FIELD

BY_ARRIVAL: Final = 4
_OP: Final = 3


def log_schema(dataset: DatasetDefinition, *, with_kept_fields: bool) -> pa.Schema:
    """The columns of a log file. `with_kept_fields`: with the column of kept fields."""
    # Logs of earlier releases have no column for tombstones.
    return pa.schema(
        [
            *incoming_schema(dataset, with_kept_fields=with_kept_fields),
            *META_FIELDS,
            KEEP_FIELD.with_nullable(True),
        ]
    )


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
        first = 0
        for file in self._logs:
            parquet = self._reader.open(file)
            schema = log_schema(self._dataset, with_kept_fields=KEPT_COLUMN in parquet.schema_arrow.names)
            for group in range(parquet.metadata.num_row_groups):
                rows = resolved(
                    read_row_group(parquet, group, schema), file.written_version, file.first_offset
                )
                yield self._numbered(rows, first, file.written_at)
                first = len(self._intents)

    def _numbered(self, rows: pa.Table, first: int, written_at: datetime | None) -> pa.Table:
        """The rows with numbers from `first` on, one for each write and way to apply its rows."""
        stored_ops = rows.column(OP_COLUMN).to_numpy()
        writes = np.stack(
            [
                rows.column(JOB_COLUMN).to_numpy().astype(np.int64),
                stored_ops // BY_ARRIVAL,
                rows.column(KEEP_FIELD.name).fill_null(0).to_numpy().astype(np.int64),
            ],
            axis=1,
        )
        distinct, numbers = np.unique(writes, axis=0, return_inverse=True)
        for number, (_, by_arrival, keep_seconds) in enumerate(distinct.tolist(), first):
            self._intents[number] = WriteIntent(
                operation=Operation.CHANGELOG,
                by_arrival=bool(by_arrival),
                keep_seconds=keep_seconds,
                committed_at=written_at,
            )
        rows = rows.drop_columns([KEEP_FIELD.name])
        at = rows.schema.get_field_index(OP_COLUMN)
        rows = rows.set_column(at, OP_FIELD, pa.array(stored_ops & _OP, pa.uint8()))
        at = rows.schema.get_field_index(JOB_COLUMN)
        jobs = pa.array(first + numbers.reshape(-1), pa.int32())
        return rows.set_column(at, rows.schema.field(at), jobs)
