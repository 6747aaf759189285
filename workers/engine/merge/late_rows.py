"""Late rows among those of a merge task: counted, and dropped or quarantined where the dataset says so."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa
from msgspec.structs import replace

from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.storage import Storage
from app.kernel.codecs.faults import below
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.watermarks import Lateness, is_late, latest, watermark_of, watermark_text
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import Late, Watermark
from app.kernel.format.errors import FieldError
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN

# Other operations state what the table becomes: without a row they would delete one.
_LEAVES_OUT: Final = frozenset({Operation.INSERT, Operation.UPSERT, Operation.BULK_INSERT})


class LateRows:
    """Compares the rows of one task with the watermark before the commit. Deletions are neither late nor events."""

    def __init__(self, task: MergeTask, storage: Storage, path: Callable[[], str]) -> None:
        """`path`: a new path for a file of quarantined rows."""
        self._task = task
        self._storage = storage
        self._path = path
        self._watermark: datetime | None = None
        self._rows: dict[int, int] = {}
        self._dropped: dict[int, int] = {}
        self._quarantined: dict[int, tuple[QuarantineFile, ...]] = {}

    def taken(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """The rows to merge. `tables`: incoming rows, each of one write. Raises StorageFull."""
        rule = self._task.dataset.watermark
        if rule is None or not self._task.checks_lateness:
            yield from tables
            return
        for rows in tables:
            rows_to_merge = self._judged(rows, rule)
            if rows_to_merge.num_rows:
                yield rows_to_merge

    def _judged(self, rows: pa.Table, rule: Watermark) -> pa.Table:
        job = int(rows.column(JOB_COLUMN)[0].as_py())
        times = rows.column(rule.field)
        puts = np.isin(rows.column(OP_COLUMN).to_numpy(), (Op.APPEND, Op.CORRECT_TO))
        late = puts & is_late(times, self._task.watermark)
        self._rows[job] = self._rows.get(job, 0) + int(late.sum())
        rows_to_merge = rows
        if late.any() and rule.late is not Late.ACCEPT and self._may_leave_out(job):
            rows_to_merge = rows.filter(pa.array(~late))
            self._leave_out(job, rows.filter(pa.array(late)), rule)
            puts = puts[~late]
        events = rows_to_merge.column(rule.field).filter(pa.array(puts))
        self._watermark = latest([self._watermark, watermark_of(events, rule.delay_seconds)])
        return rows_to_merge

    def _may_leave_out(self, job: int) -> bool:
        intent = self._task.intents[job]
        return self._task.scope is None and intent.operation in _LEAVES_OUT and not intent.accept_late

    def _leave_out(self, job: int, rows: pa.Table, rule: Watermark) -> None:
        if rule.late is Late.DROP:
            self._dropped[job] = self._dropped.get(job, 0) + rows.num_rows
            return
        before = self._task.watermark
        error = FieldError(
            pointer=below("", rule.field),
            detail=f"late: expected a time from the watermark {before and watermark_text(before)} on",
        )
        store = QuarantineFileStore(self._storage)
        names = self._task.dataset.schema.names()
        file = store.write_rows(
            rows.select(names), rows.column(ROW_COLUMN).to_pylist(), [error] * rows.num_rows, self._path()
        )
        if file is not None:
            self._quarantined[job] = (*self._quarantined.get(job, ()), file)

    def reported(self, message: CommitMessage) -> CommitMessage:
        """The message of the task with what was found of its late rows. Rows that were dropped count as unchanged."""
        if not self._task.checks_lateness:
            return message
        counts = dict(message.counts)
        for job, row_count in self._dropped.items():
            counts[job] = counts.get(job, RowCounts()) + RowCounts(unchanged=row_count)
        quarantine_files = dict(message.quarantined)
        for job, files in self._quarantined.items():
            quarantine_files[job] = (*quarantine_files.get(job, ()), *files)
        lateness = Lateness(before=self._task.watermark, watermark=self._watermark, rows=self._rows)
        return replace(message, counts=counts, quarantined=quarantine_files, lateness=lateness)
