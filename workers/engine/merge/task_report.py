"""The report of a task: changes for the feed, counts, conflicts and quarantined records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from app.infra.files.data_sink import SMALL_CHANGES_BYTES, ChangelogSink, ChangesSection, DataSink, at_offset
from app.infra.files.ordered_sink import OrderedSink
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.slices.slice_merge import MatchedRows
from app.kernel.codecs.faults import below
from app.kernel.commit.commit_message import CommitMessage, KeyConflict, Reads
from app.kernel.commit.merge.outcome import MergeResult
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import FieldError
from app.kernel.format.file_group import DataFile
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.paths import Folder
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, SYMBOLS
from app.kernel.format.rows.key_order import key_order
from app.kernel.format.rows.meta_columns import CORRECTS_FIELD
from app.kernel.format.rows.placement import Placement
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import time_of
from workers.engine.task_files import TaskFiles

_ABSENT = FieldError(pointer="/row", detail="no row of the table equals this one, so it cannot be retracted")
_DUPLICATE = FieldError(pointer="", detail="the key is already in the table; use upsert to update its row")


class TaskReport:
    """Collects the results of a task's merges. Writes their changes to the changelog as the dataset's producer
    requires.
    """

    def __init__(
        self, files: TaskFiles, changelog: ChangelogSink | ChangesSection, *, defers_changes: bool = False
    ) -> None:
        """`defers_changes`: changes are not emitted now, but when the written rows are compacted."""
        self._deferred = defers_changes
        self._files = files
        self._changelog = changelog
        self._counts: dict[int, RowCounts] = {job: RowCounts() for job in files.task.intents}
        self._conflicts: list[KeyConflict] = []
        self._quarantined_rows: list[pa.Table] = []
        self._overflowed: list[str | None] = []
        self._written_once: DataSink | None = None
        self._valid_until: int | None = None
        self.changed = False

    @property
    def failed(self) -> bool:
        """Whether an insert has live keys. Then the task's output is not usable."""
        return bool(self._conflicts)

    def place(self, matched_rows: MatchedRows, placement: Placement, sink: DataSink | OrderedSink) -> None:
        """Adds the result, and writes its changes and its new rows. Many appends are written once, as both."""
        result = self._add(matched_rows.result)
        if isinstance(sink, DataSink) and self._are_changes(matched_rows, sink):
            sink.write_changes(self._files.task.slot, result.rows, result.key_hashes)
            self._written_once = sink
            return
        fresh = self.emit(result)
        if fresh.num_rows:
            for slot, part in placement.split(fresh, matched_rows.former_files()):
                sink.write(slot, part)

    def _are_changes(self, matched_rows: MatchedRows, sink: DataSink) -> bool:
        """Whether the new rows are all rows of their files, and their appends all changes of the task, in one order."""
        task, result = self._files.task, matched_rows.result
        return (
            result.appends_only
            and result.rows.nbytes > SMALL_CHANGES_BYTES
            and matched_rows.complete
            and not matched_rows.live.num_rows
            and sink.is_empty
            and self._emits_effects
            and not self._changelog.rows
            and task.dataset.has_one_slot
        )

    def add_result(self, result: MergeResult) -> pa.Table:
        """Adds the result and emits its changes. Returns its new rows with their position in the feed."""
        return self.emit(self._add(result))

    def _add(self, result: MergeResult) -> MergeResult:
        """Adds the result, and returns it as it is stored."""
        self.count(result.counts)
        self._conflicts += result.conflicts
        if result.quarantined_rows.num_rows:
            self._quarantined_rows.append(result.quarantined_rows)
            self._overflowed += result.overflow_fields
        self.changed |= result.changed
        times = (time for time in (self._valid_until, result.valid_until) if time is not None)
        self._valid_until = min(times, default=None)
        if not (self._loads and result.appends_only):
            return result
        # By key, so that the bounds of row groups exclude other keys.
        return result.in_order(key_order(result.rows, self._files.task.dataset.record_key))

    @property
    def _loads(self) -> bool:
        """Whether the writes are bulk inserts, whose new rows are stored by key."""
        intents = self._files.task.intents.values()
        return bool(intents) and all(intent.operation is Operation.BULK_INSERT for intent in intents)

    def count(self, counts: Mapping[int, RowCounts]) -> None:
        """Adds the row counts of the grouped writes."""
        for job, more in counts.items():
            self._counts[job] = self._counts.get(job, RowCounts()) + more

    @property
    def emits_input(self) -> bool:
        """Whether the feed gets the rows as they were sent. If some may be rejected, it gets the effects instead."""
        task = self._files.task
        # Logs are not merged now, so no sum of theirs can be rejected.
        checks_sums = bool(task.dataset.aggregates) and task.dataset.looks_up
        return (
            task.dataset.changelog.producer is ChangelogProducer.INPUT
            and not self._deferred
            and task.scope is None
            and not any(
                intent.operation.refuses_live_keys
                or (intent.quarantine and not intent.by_arrival and checks_sums)
                for intent in task.intents.values()
            )
        )

    @property
    def _emits_effects(self) -> bool:
        """Whether the feed gets the changes of results now."""
        producer = self._files.task.dataset.changelog.producer
        return not (self._deferred or producer is ChangelogProducer.NONE or self.emits_input)

    def emit(self, result: MergeResult) -> pa.Table:
        """Emits the changes of a merge, and returns its rows with their position in the feed."""
        if not self._emits_effects:
            return at_offset(result.rows, None)
        rows = at_offset(result.rows, self._changelog.rows)
        self._changelog.write(result.changes)
        return rows

    def emit_input(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Passes incoming rows on, and emits them unchanged if the feed has rows as they were sent."""
        schema = self._files.task.dataset.schema
        nullable_schema = pa.schema([field.with_nullable(True) for field in schema.to_arrow()])
        for rows in tables:
            if self.emits_input:
                changes = rows.select(schema.names()).cast(nullable_schema)
                changes = changes.add_column(0, OP_FIELD, rows.column(OP_COLUMN))
                nulls = pa.nulls(rows.num_rows, pa.int64())
                self._changelog.write(changes.add_column(1, CORRECTS_FIELD, nulls))
            yield rows

    def message(
        self, *, removed_paths: tuple[str, ...], new_files: tuple[DataFile, ...], reads: Reads = Reads.GROUP
    ) -> CommitMessage:
        """The message of a task that changed files. `reads`: the files that must be unchanged at the commit."""
        written_once = () if self._written_once is None else self._written_once.changelog
        return CommitMessage(
            file_group=self._files.task.file_group,
            reads=reads,
            removed=removed_paths,
            added=new_files,
            changelog=(*written_once, *self._changelog.finish()),
            counts=self._counts,
            quarantined=self._quarantine_files(),
            valid_until=time_of(self._valid_until),
        )

    def empty_message(self) -> CommitMessage:
        """The message of a task that changed nothing, or must not."""
        return CommitMessage(
            file_group=self._files.task.file_group,
            counts=self._counts,
            conflicts=tuple(self._conflicts),
            quarantined={} if self._conflicts else self._quarantine_files(),
            valid_until=time_of(self._valid_until),
        )

    def _quarantine_files(self) -> dict[int, tuple[QuarantineFile, ...]]:
        """Writes the quarantined rows, those of each write to a file of its own."""
        if not self._quarantined_rows:
            return {}
        names = self._files.task.dataset.schema.names()
        store = QuarantineFileStore(self._files.resources.storage)
        rows = pa.concat_tables(self._quarantined_rows)
        jobs = rows.column(JOB_COLUMN).to_numpy()
        errors = [self._error(field) for field in self._overflowed]
        files_by_job: dict[int, tuple[QuarantineFile, ...]] = {}
        for job in np.unique(jobs):
            at = np.flatnonzero(jobs == job)
            job_rows = rows.take(pa.array(at))
            path = self._files.path(Folder.QUARANTINE, self._files.task.slot)
            file = store.write_rows(
                _as_changes(job_rows, names) if self._files.task.by_value else job_rows.select(names),
                job_rows.column(ROW_COLUMN).to_pylist(),
                [errors[number] for number in at],
                path,
            )
            files_by_job[int(job)] = () if file is None else (file,)
        return files_by_job

    def _error(self, sum_field: str | None) -> FieldError:
        """The error of a quarantined row. `sum_field`: the field whose sum would overflow, if any."""
        if sum_field is None:
            return _ABSENT if self._files.task.by_value else _DUPLICATE
        kind = self._files.task.dataset.schema.field(sum_field).type
        return FieldError(
            pointer=below("", sum_field),
            detail=f"with the rows of this key in the write, the sum exceeds the range of {kind}",
        )


def _as_changes(rows: pa.Table, names: list[str]) -> pa.Table:
    """The rows in the form of the feed, with their ops, so that they can be written again."""
    whole = rows.combine_chunks().to_batches()[0]
    ops = pa.array([SYMBOLS[op] for op in whole.column(OP_COLUMN).to_pylist()], pa.string())
    members = pa.StructArray.from_arrays([whole.column(name) for name in names], names)
    return pa.table({"op": ops, "row": members})
