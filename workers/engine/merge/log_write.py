"""Writes that are stored unmerged: logs, which are merged on read, and postponed writes, which have no bucket yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from app.infra.files.log_file import PUT, log_schema
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.slices.slice_merge import MatchedRows, merge_incoming
from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import RowCounts
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import META_FIELDS
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from workers.engine.merge.task_report import TaskReport
from workers.engine.task_files import TaskFiles


def write_log(files: TaskFiles, kind: FileKind) -> CommitMessage:
    """Stores the incoming rows beside the base files. Raises CorruptFile, StorageFull.

    Inserts are still looked up, because a live key must not be inserted again. Then the log has the merged result of
    the group's writes.
    """
    with files.data_sink(kind, log_schema(files.task.dataset)) as sink, files.changelog_sink() as changelog:
        defers_changes = files.task.dataset.changelog.producer is ChangelogProducer.DEFERRED
        report = TaskReport(files, changelog, defers_changes=defers_changes or kind is FileKind.POSTPONED)
        checks_keys = any(intent.operation.refuses_live_keys for intent in files.task.intents.values())
        for rows in _resolved(files, report) if checks_keys else _unmerged(files, report):
            sink.write(files.task.slot, rows)
        if report.failed:
            return report.empty_message()
        log_files = sink.finish()
        if not log_files:
            return report.empty_message()
        # Unmerged rows stay valid whatever is committed meanwhile.
        reads = Reads.GROUP if checks_keys else Reads.NOTHING
        return report.message(removed_paths=(), new_files=log_files, reads=reads)


def _unmerged(files: TaskFiles, report: TaskReport) -> Iterator[pa.Table]:
    for rows in report.emit_input(files.incoming().tables):
        ops = rows.column(OP_COLUMN).to_numpy()
        deletes = np.isin(ops, (Op.RETRACT, Op.CORRECT_FROM))
        report.count(_counted(rows.column(JOB_COLUMN).to_numpy(), deletes))
        yield _as_log(files, rows, ops)


def _counted(jobs: np.ndarray, deletes: np.ndarray) -> dict[int, RowCounts]:
    """Counts without a lookup: a row that is put counts as an update, a row that deletes as a deletion."""
    counts = {}
    for job in np.unique(jobs):
        deletion_count = int((deletes & (jobs == job)).sum())
        counts[int(job)] = RowCounts(
            updated=int((jobs == job).sum()) - deletion_count, deleted=deletion_count
        )
    return counts


def _resolved(files: TaskFiles, report: TaskReport) -> Iterator[pa.Table]:
    """The merged result of the writes: rows that replace live rows, and deleted keys."""
    task = files.task
    blocks = merged_blocks(files.resources.slices, task.dataset, task.files, files.resources.memory)
    incoming = files.incoming()
    for item in merge_incoming(
        task.dataset, lambda _: blocks, incoming, files.resources.memory, live_rows=files.live_rows
    ):
        if not isinstance(item, MatchedRows):
            continue
        fresh = report.add_result(item.result)
        yield _as_log(files, _numbered(fresh), np.full(fresh.num_rows, PUT))
        has_successor = np.zeros(item.live.num_rows, dtype=bool)
        has_successor[item.result.replaces[item.result.replaces >= 0]] = True
        deletions = item.live.filter(pa.array(~item.result.stays & ~has_successor))
        yield _as_log(files, _numbered(_bare(files, deletions)), np.full(deletions.num_rows, Op.RETRACT))


def _bare(files: TaskFiles, rows: pa.Table) -> pa.Table:
    """The keys alone: without an ordering value, a delete always wins."""
    key = key_fields(files.task.dataset)
    columns = [
        rows.column(name) if name in key else pa.nulls(rows.num_rows, rows.schema.field(name).type)
        for name in rows.column_names
    ]
    return pa.table(columns, schema=pa.schema([field.with_nullable(True) for field in rows.schema]))


def _numbered(rows: pa.Table) -> pa.Table:
    """The rows with the numbers of one write. Each key occurs once, so their order has no effect."""
    rows = rows.append_column(ROW_COLUMN, pa.array(np.arange(rows.num_rows)))
    return rows.append_column(JOB_COLUMN, pa.array(np.zeros(rows.num_rows, dtype=np.int32)))


def _as_log(files: TaskFiles, rows: pa.Table, ops: np.ndarray) -> pa.Table:
    schema = log_schema(files.task.dataset)
    if OP_COLUMN in rows.column_names:
        rows = rows.drop_columns([OP_COLUMN])
    for field in META_FIELDS:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    rows = rows.add_column(0, OP_FIELD, pa.array(ops.astype(np.uint8)))
    return rows.select(schema.names).cast(schema)
