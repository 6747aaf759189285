"""Writes that are stored unmerged: logs, which are merged on read, and postponed writes, which have no bucket yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from app.infra.files.log_file import BY_ARRIVAL, log_schema
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.slices.slice_merge import MatchedRows, merge_incoming
from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.commit.merge.incoming_rows import JobFacts
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.partition.members import key_fields, member_path, with_member
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.kept_fields import with_kept_column
from app.kernel.format.rows.meta_columns import META_FIELDS
from app.kernel.format.rows.staging import JOB_COLUMN, ROW_COLUMN
from app.kernel.format.rows.tombstones import KEEP_FIELD, ORDERING_COLUMN
from workers.engine.merge.task_report import TaskReport
from workers.engine.task_files import TaskFiles


def write_log(files: TaskFiles, kind: FileKind) -> CommitMessage:
    """Stores the incoming rows beside the base files. Raises CorruptFile, StorageFull.

    Inserts are still looked up, because a live key must not be inserted again. Then the log has the merged result of
    the group's writes.
    """
    with files.data_sink(kind, _schema(files)) as sink, files.changelog_sink() as changelog:
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


def _schema(files: TaskFiles) -> pa.Schema:
    # Rows of changes may keep fields; which do is known once all have been read.
    writes = files.task.intents.values()
    keeps = any(intent.operation is Operation.CHANGELOG for intent in writes)
    return log_schema(files.task.dataset, with_kept_fields=keeps)


def _unmerged(files: TaskFiles, report: TaskReport) -> Iterator[pa.Table]:
    facts = JobFacts.of(files.task.intents)
    for rows in report.emit_input(files.incoming().tables):
        ops, jobs = rows.column(OP_COLUMN).to_numpy(), rows.column(JOB_COLUMN).to_numpy()
        deletes = np.isin(ops, (Op.RETRACT, Op.CORRECT_FROM))
        report.count(_counted(jobs, deletes))
        yield _as_log(
            files,
            rows,
            np.where(facts.by_arrival[jobs], ops + BY_ARRIVAL, ops),
            facts.keep_seconds[jobs],
        )


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
    """The merged result of the writes, by arrival: keys without a row, rows, and tombstones. Of a key, what comes last
    counts.
    """
    task = files.task
    tombstones = files.tombstones()
    blocks = merged_blocks(
        files.resources.slices, task.dataset, task.files, files.resources.memory, tombstones
    )
    for item in merge_incoming(
        task.dataset,
        lambda _: blocks,
        files.incoming(),
        files.resources.memory,
        live_rows=files.live_rows,
        tombstones=tombstones,
    ):
        if not isinstance(item, MatchedRows):
            continue
        result = item.result
        fresh = report.add_result(result)
        has_successor = np.zeros(item.live.num_rows, dtype=bool)
        has_successor[result.replaces[(result.replaces >= 0) & (result.replaces < len(has_successor))]] = True
        gone = [item.live.filter(pa.array(~result.stays & ~has_successor))]
        if item.tombstones is not None:
            gone.append(item.tombstones.filter(pa.array(~result.tombstones_stay)))
        for rows in gone:
            yield _decided(files, _bare(files, rows), Op.RETRACT)
        yield _decided(files, fresh, Op.APPEND)
        if result.tombstones is not None:
            yield _decided(
                files, _bare(files, result.tombstones), Op.RETRACT, result.tombstones.column(KEEP_FIELD.name)
            )


def _decided(
    files: TaskFiles, rows: pa.Table, op: Op, keep_seconds: pa.ChunkedArray | None = None
) -> pa.Table:
    """The rows of a log whose effect is certain. Each key occurs once, so the numbers of rows have no effect."""
    count = rows.num_rows
    rows = rows.append_column(ROW_COLUMN, pa.array(np.arange(count)))
    rows = rows.append_column(JOB_COLUMN, pa.array(np.zeros(count, dtype=np.int32)))
    keep = np.zeros(count) if keep_seconds is None else keep_seconds.to_numpy()
    return _as_log(files, rows, np.full(count, op + BY_ARRIVAL), keep)


def _bare(files: TaskFiles, rows: pa.Table) -> pa.Table:
    """The keys, with the ordering value if the rows are tombstones."""
    dataset = files.task.dataset
    schema = pa.schema([field.with_nullable(True) for field in dataset.schema.to_arrow()])
    key = key_fields(dataset)
    columns = {
        field.name: rows.column(field.name).cast(field.type)
        if field.name in key
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    }
    if ORDERING_COLUMN in rows.column_names and dataset.ordering_field is not None:
        name, *members = member_path(dataset.ordering_field, schema.names)
        columns[name] = with_member(columns[name], members, rows.column(ORDERING_COLUMN))
    return pa.table(columns, schema=schema)


def _as_log(files: TaskFiles, rows: pa.Table, ops: np.ndarray, keep_seconds: np.ndarray) -> pa.Table:
    schema = _schema(files)
    rows = with_kept_column(rows)
    if OP_COLUMN in rows.column_names:
        rows = rows.drop_columns([OP_COLUMN])
    for field in META_FIELDS:
        if field.name not in rows.column_names:
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    rows = rows.add_column(0, OP_FIELD, pa.array(ops.astype(np.uint8)))
    rows = rows.append_column(KEEP_FIELD.name, pa.array(keep_seconds.astype(np.int32)))
    return rows.select(schema.names).cast(schema)
