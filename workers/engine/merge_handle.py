"""The merge task: brings one file group up to date. Runs in Spark's Python processes; never sees Postgres."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.files.parquet_file import (
    BASE_ROW_GROUP_ROWS,
    CHANGELOG_ROW_GROUP_ROWS,
    ParquetReader,
    ParquetSink,
    column_statistics,
    create_parquet,
    unique_columns,
)
from app.files.staged_file import StagedFileStore
from app.files.storage import Storage
from app.lake.changelog import OP_COLUMN, OP_FIELD, Op
from app.lake.commit_message import CommitMessage
from app.lake.file_group import ChangelogFile, DataFile
from app.lake.instant import RowCounts
from app.lake.merge import merge
from app.lake.paths import Folder, written_path
from app.lake.record_key import encode_keys
from app.lake.staging import JOB_COLUMN, ROW_COLUMN
from app.lake.write_plan import MergeTask


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """Merges staged rows into a file group of one dataset."""

    storage: Storage
    reader: ParquetReader

    @classmethod
    def on(cls, storage: Storage) -> MergeHandle:
        return cls(storage, ParquetReader(storage))

    def run(self, task: MergeTask) -> CommitMessage:
        """Writes the new base file and the changelog file. Raises CorruptFile, StorageFull."""
        incoming = self._incoming(task)
        return self._merge(task, incoming) if task.dataset.keyed else self._append(task, incoming)

    def _incoming(self, task: MergeTask) -> pa.Table:
        store = StagedFileStore(self.storage)
        parts = []
        for segment in task.segments:
            rows = store.read(segment.file, segment.batch_indices, task.dataset)
            job = pa.repeat(pa.scalar(segment.job, pa.int32()), rows.num_rows)
            parts.append(rows.append_column(pa.field(JOB_COLUMN, pa.int32(), nullable=False), job))
        return pa.concat_tables(parts)

    def _append(self, task: MergeTask, incoming: pa.Table) -> CommitMessage:
        """Rows without a key meet nothing: they are written as they are, and each is an append in the feed."""
        schema = task.dataset.schema.to_arrow()
        rows = incoming.drop_columns([OP_COLUMN, JOB_COLUMN, ROW_COLUMN]).cast(schema)
        jobs, counts = np.unique(incoming.column(JOB_COLUMN).to_numpy(), return_counts=True)
        with self._data_file(task) as sink:
            sink.write(rows)
            sink.finish()
        ops = pa.array(np.full(rows.num_rows, Op.APPEND, dtype=np.uint8))
        return CommitMessage(
            file_group=task.file_group,
            added=(_data_file(task, sink),),
            changelog=self._changelog(task, rows.add_column(0, OP_FIELD, ops)),
            counts={int(job): RowCounts(inserted=int(n)) for job, n in zip(jobs, counts, strict=True)},
        )

    def _merge(self, task: MergeTask, incoming: pa.Table) -> CommitMessage:
        with self._data_file(task) as sink:
            current = self._pass_through(task, incoming, sink)
            result = merge(task.dataset, current, incoming, task.intents)
            changed = result.changes.num_rows > 0 and not result.conflicts
            if changed:
                sink.write(current.filter(pa.array(result.kept)))
                sink.write(result.rows)
                # A bucket whose last row is gone has no file.
                if sink.rows:
                    sink.finish()
        if not changed:
            return CommitMessage(file_group=task.file_group, counts=result.counts, conflicts=result.conflicts)
        return CommitMessage(
            file_group=task.file_group,
            removed=tuple(file.path for file in task.files),
            added=(_data_file(task, sink),) if sink.finished else (),
            changelog=self._changelog(task, result.changes),
            counts=result.counts,
        )

    def _pass_through(self, task: MergeTask, incoming: pa.Table, sink: ParquetSink) -> pa.Table:
        """Copies base rows of untouched keys to the new file, one row group at a time, and returns the others."""
        schema = task.dataset.schema.to_arrow()
        touched = [schema.empty_table()]
        key = task.dataset.record_key
        keys = encode_keys(incoming, key).unique()
        for rows in self._base_row_groups(task, schema):
            hits = pc.is_in(encode_keys(rows, key), value_set=keys)
            if pc.any(hits).as_py():
                touched.append(rows.filter(hits))
                rows = rows.filter(pc.invert(hits))
            sink.write(rows)
        return pa.concat_tables(touched).combine_chunks()

    def _base_row_groups(self, task: MergeTask, schema: pa.Schema) -> Iterator[pa.Table]:
        for file in task.files:
            parquet = self.reader.open(file)
            for group in range(parquet.metadata.num_row_groups):
                yield self.reader.read_row_group(file, group, schema)

    def _data_file(self, task: MergeTask) -> AbstractContextManager[ParquetSink]:
        return create_parquet(
            self.storage,
            written_path(task.data_prefix, Folder.DATA, task.slot, task.attempt),
            task.dataset.schema.to_arrow(),
            row_group_rows=BASE_ROW_GROUP_ROWS,
            unique_columns=unique_columns(task.dataset),
        )

    def _changelog(self, task: MergeTask, changes: pa.Table) -> tuple[ChangelogFile, ...]:
        with create_parquet(
            self.storage,
            written_path(task.data_prefix, Folder.CHANGES, task.slot, task.attempt),
            changes.schema,
            row_group_rows=CHANGELOG_ROW_GROUP_ROWS,
            unique_columns=unique_columns(task.dataset),
        ) as sink:
            sink.write(changes)
            sink.finish()
        stored = sink.stored(task.dataset.schema.id)
        return (ChangelogFile(**msgspec.structs.asdict(stored), file_group=task.file_group),)


def _data_file(task: MergeTask, sink: ParquetSink) -> DataFile:
    return DataFile(
        **msgspec.structs.asdict(sink.stored(task.dataset.schema.id)),
        file_group=task.file_group,
        slot=task.slot,
        statistics=column_statistics(sink.metadata[0], task.dataset.schema),
    )
