"""Staged files: Arrow IPC with LZ4; every record batch has one slot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc

from app.files.checksums import HashingSink, buffered, verify
from app.files.storage import Storage
from app.format.dataset import BucketMode, DatasetDefinition
from app.format.file_group import Slot
from app.format.operation import Operation
from app.format.partition.codes import partition_codes
from app.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.format.rows.staged import StagedBatch, StagedFile
from app.format.rows.staging import ROW_COLUMN, split_by_slot, with_ops
from app.format.schema.schema_projection import project_rows

_OPTIONS = ipc.IpcWriteOptions(compression="lz4")


class StagedFileStore:
    """Writes and reads staged files on a storage."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def write(
        self,
        dataset: DatasetDefinition,
        operation: Operation,
        tables: Iterable[pa.Table],
        path: str,
    ) -> StagedFile | None:
        """Splits validated rows by slot and stores them at `path`; None, and no file, without rows.

        `tables`: in the order of arrival, the dataset's columns, nullable where the input's are; those of a changelog
        with `_hw_op` in front. Raises StorageFull.
        """
        parts = _parts(dataset, (with_ops(table, operation, dataset) for table in tables))
        head = next(parts, None)
        if head is None:
            return None
        batches: list[StagedBatch] = []
        partitions: set[str] = set()
        hidden = operation is Operation.OVERWRITE and dataset.bucket.mode is BucketMode.KEY_DYNAMIC
        with self._storage.create(path) as file:
            sink = HashingSink(file)
            schema = _staged_schema(dataset)
            with buffered(sink) as out, ipc.new_file(out, schema, options=_OPTIONS) as writer:
                for slot, batch in chain([head], parts):
                    writer.write_batch(batch.cast(schema))
                    batches.append(StagedBatch(slot=slot, index=len(batches), rows=batch.num_rows))
                    if hidden:
                        partitions.update(partition_codes(pa.table(batch), dataset.partition_by)[1])
        return StagedFile(
            path=path,
            size_bytes=sink.size_bytes,
            checksum=sink.checksum,
            rows=sum(batch.rows for batch in batches),
            batches=tuple(batches),
            partitions=tuple(sorted(partitions)),
        )

    def read(
        self,
        file: StagedFile,
        indices: Sequence[int],
        dataset: DatasetDefinition,
        operation: Operation = Operation.UPSERT,
    ) -> pa.Table:
        """The requested record batches, with each row's position in its write. Raises CorruptFile.

        Rows that were staged under an earlier schema of the dataset are converted to the current one. `operation`, of
        the write, determines the ops of rows that an earlier release staged without ops.
        """
        opened = self._storage.open(file.path)
        verify(file, opened)
        reader = ipc.open_file(opened)
        rows = pa.Table.from_batches([reader.get_batch(index) for index in indices], schema=reader.schema)
        if OP_COLUMN not in rows.column_names:
            rows = with_ops(rows, operation, dataset)
        return _placed(project_rows(rows, _staged_schema(dataset)), file.first_row)


def _placed(rows: pa.Table, first_row: int) -> pa.Table:
    """The rows with their positions in the whole write."""
    if first_row == 0:
        return rows
    number = rows.schema.get_field_index(ROW_COLUMN)
    return rows.set_column(number, rows.schema.field(number), pc.add(rows.column(number), first_row))


def _parts(dataset: DatasetDefinition, tables: Iterable[pa.Table]) -> Iterator[tuple[Slot, pa.RecordBatch]]:
    first_row = 0
    for table in tables:
        yield from split_by_slot(table, dataset, first_row)
        first_row += table.num_rows


def _staged_schema(dataset: DatasetDefinition) -> pa.Schema:
    # Rows of a delete omit columns, so every staged column may contain nulls.
    fields = [field.with_nullable(True) for field in dataset.schema.to_arrow()]
    return pa.schema([OP_FIELD, *fields, pa.field(ROW_COLUMN, pa.int64(), nullable=False)])
