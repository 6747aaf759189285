"""Appends rows without a key: they match no live rows, and each is an append in the feed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from app.infra.files.data_sink import SMALL_CHANGES_BYTES, DataSink
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.merge.outcome import appends
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.instant import RowCounts
from app.kernel.format.rows.changelog import OP_COLUMN
from app.kernel.format.rows.meta_columns import META_FIELDS, relative_offsets
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from workers.engine.task_files import TaskFiles


def append_rows(files: TaskFiles) -> CommitMessage:
    """Writes the incoming rows. Raises CorruptFile, StorageFull."""
    task = files.task
    emits = task.dataset.changelog.producer is not ChangelogProducer.NONE
    schema = task.dataset.schema.to_arrow()
    counts: Counter[int] = Counter()
    row_count = 0
    written_once: DataSink | None = None
    with files.ordered_sink() as sink, files.changelog_sink() as changelog:
        incoming = files.incoming()
        for table in incoming.tables:
            for job, number in zip(*np.unique(table.column(JOB_COLUMN), return_counts=True), strict=True):
                counts[int(job)] += int(number)
            rows = table.drop_columns([OP_COLUMN, ROW_COLUMN, JOB_COLUMN]).cast(schema)
            places = np.arange(row_count, row_count + rows.num_rows)
            offsets = relative_offsets(places) if emits else pa.nulls(rows.num_rows, pa.int64())
            file_rows = rows.append_column(META_FIELDS[0], pa.nulls(rows.num_rows, pa.int64()))
            file_rows = file_rows.append_column(META_FIELDS[1], offsets)
            if (
                isinstance(sink, DataSink)
                and sink.is_empty
                and emits
                and rows.nbytes * incoming.rows > SMALL_CHANGES_BYTES * rows.num_rows
            ):
                # Many rows are written once, as rows and as changes, if both have the same order.
                written_once = sink
            if written_once is not None:
                written_once.write_changes(task.slot, file_rows)
            else:
                sink.write(task.slot, file_rows)
                if emits:
                    changelog.write(appends(rows))
            row_count += rows.num_rows
        new_files = sink.finish()
        return CommitMessage(
            file_group=task.file_group,
            added=new_files,
            changelog=(*(() if written_once is None else written_once.changelog), *changelog.finish()),
            counts={job: RowCounts(inserted=number) for job, number in counts.items()},
        )
