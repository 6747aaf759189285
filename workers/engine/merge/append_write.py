"""Appends rows without a key: they match no live rows, and each is an append in the feed."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from app.commit.commit_message import CommitMessage
from app.format.dataset import ChangelogProducer
from app.format.instant import RowCounts
from app.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.format.rows.meta_columns import CORRECTS_FIELD, META_FIELDS, relative_offsets
from app.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from workers.engine.task_files import TaskFiles


def append_rows(files: TaskFiles) -> CommitMessage:
    """Writes the incoming rows. Raises CorruptFile, StorageFull."""
    task = files.task
    emits = task.dataset.changelog.producer is not ChangelogProducer.NONE
    schema = task.dataset.schema.to_arrow()
    counts: Counter[int] = Counter()
    written = 0
    with files.data_sink() as sink, files.changelog_sink() as changelog:
        for table in files.incoming().tables:
            for job, number in zip(*np.unique(table.column(JOB_COLUMN), return_counts=True), strict=True):
                counts[int(job)] += int(number)
            rows = table.drop_columns([OP_COLUMN, ROW_COLUMN, JOB_COLUMN]).cast(schema)
            places = np.arange(written, written + rows.num_rows)
            offsets = relative_offsets(places) if emits else pa.nulls(rows.num_rows, pa.int64())
            stored = rows.append_column(META_FIELDS[0], pa.nulls(rows.num_rows, pa.int64()))
            sink.write(task.slot, stored.append_column(META_FIELDS[1], offsets))
            if emits:
                changelog.write(appends(rows))
            written += rows.num_rows
        return CommitMessage(
            file_group=task.file_group,
            added=sink.finish(),
            changelog=changelog.finish(),
            counts={job: RowCounts(inserted=number) for job, number in counts.items()},
        )


def appends(rows: pa.Table) -> pa.Table:
    """The changes of new rows."""
    ops = pa.array(np.full(rows.num_rows, Op.APPEND, dtype=np.uint8))
    changes = rows.add_column(0, OP_FIELD, ops)
    return changes.add_column(1, CORRECTS_FIELD, pa.nulls(rows.num_rows, pa.int64()))
