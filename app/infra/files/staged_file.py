"""Staged files: Arrow IPC, with LZ4 if that makes the rows much smaller; every record batch has one slot.

The rows of small writes are no files: they are part of the value, uncompressed, in one record batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc as ipc
import xxhash
from msgspec.structs import replace

from app.infra.files.checksums import HashingSink, buffered, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import Storage
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import Slot
from app.kernel.format.operation import Operation
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, KEPT_FIELD, keeps_fields, with_kept_column
from app.kernel.format.rows.staged import StagedBatch, StagedFile
from app.kernel.format.rows.staging import ROW_COLUMN, in_slot_order, split_by_slot, with_ops
from app.kernel.format.schema.schema_projection import project_rows

_CODEC: Final = pa.Codec("lz4_raw")
# Rows that stay larger than this share are not compressed: to do so takes longer than to write and read them.
_COMPRESSED_SHARE_MAX: Final = 0.6
# What is compressed to find out.
_PROBED_ROWS: Final = 4_096


class StagedFileStore:
    """Writes and reads staged files on a storage. Rows of up to `inline_bytes_max` bytes are not stored by `stage`."""

    def __init__(self, storage: Storage, *, inline_bytes_max: int = 0) -> None:
        self._storage = storage
        self._inline_bytes_max = inline_bytes_max

    def stage(
        self, dataset: DatasetDefinition, operation: Operation, rows: pa.Table, path: str
    ) -> StagedFile | None:
        """`write` of all rows of a write, but few rows are part of the value. Raises StorageFull."""
        # Rows are smaller before they are encoded.
        if rows.nbytes <= self._inline_bytes_max:
            inline = _inline(dataset, operation, rows, path)
            if inline is None or inline.size_bytes <= self._inline_bytes_max:
                return inline
        return self.write(dataset, operation, [rows], path)

    def write(
        self,
        dataset: DatasetDefinition,
        operation: Operation,
        tables: Iterable[pa.Table],
        path: str,
        *,
        durable: bool = True,
    ) -> StagedFile | None:
        """Splits validated rows by slot and stores them at `path`; None, and no file, without rows.

        `tables`: in the order of arrival, the dataset's columns, nullable where the input's are; those of a changelog
        with `_hw_op` in front, and `_hw_kept` where rows keep fields. `durable`: False if another attempt would stage
        them again. Raises StorageFull.
        """
        # Later tables of changes may keep fields where the first one does not.
        may_keep = operation is Operation.CHANGELOG and dataset.keyed
        tables = (with_ops(table, operation, dataset) for table in tables)
        parts = _parts(dataset, map(with_kept_column, tables) if may_keep else tables)
        head = next(parts, None)
        if head is None:
            return None
        batches: list[StagedBatch] = []
        partitions: set[str] = set()
        hides_partitions = _hides_partitions(dataset, operation)
        with self._storage.create(path, durable=durable) as file:
            sink = HashingSink(file)
            schema = _staged_schema(dataset, with_kept_fields=may_keep)
            options = ipc.IpcWriteOptions(compression="lz4" if _is_compressible(head[1]) else None)
            with buffered(sink) as out, ipc.new_file(out, schema, options=options) as writer:
                for slot, batch in chain([head], parts):
                    writer.write_batch(batch.cast(schema))
                    batches.append(StagedBatch(slot=slot, index=len(batches), rows=batch.num_rows))
                    if hides_partitions:
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
        rows = self._parts(file, indices)
        if OP_COLUMN not in rows.column_names:
            rows = with_ops(rows, operation, dataset)
        schema = _staged_schema(dataset, with_kept_fields=keeps_fields(rows))
        return _placed(project_rows(rows, schema), file.first_row)

    def _parts(self, file: StagedFile, indices: Sequence[int]) -> pa.Table:
        if file.content is not None:
            return _inline_parts(file, file.content, indices)
        stream = self._storage.open(file.path)
        verify(file, stream)
        reader = ipc.open_file(stream)
        return pa.Table.from_batches([reader.get_batch(index) for index in indices], schema=reader.schema)


def _is_compressible(rows: pa.RecordBatch) -> bool:
    """Whether rows like these become much smaller."""
    content = rows.slice(0, _PROBED_ROWS).serialize()
    return len(_CODEC.compress(content, asbytes=True)) <= _COMPRESSED_SHARE_MAX * content.size


def with_own_rows(task: MergeTask) -> MergeTask:
    """The task with no other rows of small writes than its own: it is sent by value. Raises CorruptFile."""
    segments = tuple(
        replace(
            segment,
            file=only_parts(segment.file, segment.batch_indices),
            batch_indices=tuple(range(len(segment.batch_indices))),
        )
        if segment.file.content is not None
        else segment
        for segment in task.segments
    )
    return replace(task, segments=segments)


def only_parts(file: StagedFile, indices: Sequence[int]) -> StagedFile:
    """Rows that are part of the value, with these parts alone, which are numbered from 0. Raises CorruptFile."""
    if file.content is None or len(indices) == len(file.batches):
        return file
    content = _encoded(_inline_parts(file, file.content, indices))
    parts = [file.batches[index] for index in indices]
    return replace(
        file,
        content=content,
        size_bytes=len(content),
        checksum=_checksum(content),
        rows=sum(part.rows for part in parts),
        batches=tuple(replace(part, index=number) for number, part in enumerate(parts)),
    )


def _inline(dataset: DatasetDefinition, operation: Operation, rows: pa.Table, path: str) -> StagedFile | None:
    """The staged rows as a value; None without rows."""
    if rows.num_rows == 0:
        return None
    sorted_rows, parts = in_slot_order(with_ops(rows, operation, dataset), dataset)
    keeps = KEPT_COLUMN in sorted_rows.column_names
    content = _encoded(sorted_rows.cast(_staged_schema(dataset, with_kept_fields=keeps)))
    hides_partitions = _hides_partitions(dataset, operation)
    partitions = partition_codes(sorted_rows, dataset.partition_by)[1] if hides_partitions else ()
    return StagedFile(
        path=path,
        size_bytes=len(content),
        checksum=_checksum(content),
        rows=sorted_rows.num_rows,
        batches=tuple(parts),
        partitions=tuple(sorted(partitions)),
        content=content,
    )


def _encoded(rows: pa.Table) -> bytes:
    """Uncompressed: to compress a few rows takes longer than all else that encodes them."""
    sink = pa.BufferOutputStream()
    with ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows.combine_chunks())
    return bytes(sink.getvalue())


def _inline_parts(file: StagedFile, content: bytes, indices: Sequence[int]) -> pa.Table:
    if _checksum(content) != file.checksum:
        raise CorruptFile(
            f"the rows of {file.path} are damaged: their checksum is not the recorded one", path=file.path
        )
    rows = ipc.open_stream(content).read_all()
    starts = list(accumulate((batch.rows for batch in file.batches), initial=0))
    if list(indices) == list(range(len(file.batches))):
        return rows
    return pa.concat_tables([rows.slice(starts[index], file.batches[index].rows) for index in indices])


def _checksum(content: bytes) -> str:
    return xxhash.xxh3_128_hexdigest(content)


def _hides_partitions(dataset: DatasetDefinition, operation: Operation) -> bool:
    """Whether the slots of an overwrite do not have its partitions."""
    return operation is Operation.OVERWRITE and dataset.bucket.mode is BucketMode.KEY_DYNAMIC


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


def _staged_schema(dataset: DatasetDefinition, *, with_kept_fields: bool) -> pa.Schema:
    """`with_kept_fields`: with the column of kept fields."""
    # Rows of a delete omit columns, so every staged column may contain nulls.
    fields = [field.with_nullable(True) for field in dataset.schema.to_arrow()]
    own = [KEPT_FIELD] if with_kept_fields else []
    return pa.schema([OP_FIELD, *fields, *own, pa.field(ROW_COLUMN, pa.int64(), nullable=False)])
