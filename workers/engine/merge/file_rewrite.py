"""Rewrites files: copy on write, writes with a scope on logs, compaction and clustering."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from app.infra.files.data_sink import DataSink, counted, uncounted
from app.infra.files.log_file import logged
from app.infra.files.ordered_sink import OrderedSink
from app.infra.files.slices.file_slice import Block
from app.infra.files.slices.slice_merge import MatchedRows, merge_incoming
from app.infra.files.slices.tombstone_set import TombstoneSet
from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.file_group import FileKind
from app.kernel.format.rows.meta_columns import META_NAMES, OFFSET_COLUMN
from app.kernel.format.rows.placement import Placement, numbers_in
from workers.engine.merge.task_report import TaskReport
from workers.engine.merge.tombstone_files import TombstoneFiles
from workers.engine.task_files import TaskFiles

_Sink = DataSink | OrderedSink


def rewrite_files(files: TaskFiles) -> CommitMessage:
    """Merges the incoming rows into the group's files, together with logs and postponed writes.

    Raises CorruptFile, StorageFull, InvalidRequest.
    """
    task = files.task
    placement = Placement(task.dataset, task.slot, task.files)
    read: set[int] = set()
    with files.ordered_sink() as sink, files.changelog_sink() as changelog:
        report = TaskReport(files, changelog)
        tombstone_files = TombstoneFiles(files)
        for item in _merged_rows(files, report, read, tombstone_files.tombstones):
            if isinstance(item, MatchedRows):
                for block in item.kept_blocks():
                    _place_block(block, placement, sink)
                report.place(item, placement, sink)
            else:
                _place_block(item, placement, sink)
        if report.failed:
            return report.empty_message()
        if not (report.changed or files.pending or task.compact or task.divides):
            # The feed may still have the rows as they were sent.
            return report.message(removed_paths=(), new_files=())
        ended_paths, new_tombstones = tombstone_files.finish(placement)
        removed_paths = (
            *(task.files[number].path for number in sorted(read)),
            *(file.path for file in files.pending),
            *ended_paths,
        )
        reads = Reads.FILES if task.compact else Reads.GROUP
        return report.message(
            removed_paths=removed_paths, new_files=(*sink.finish(), *new_tombstones), reads=reads
        )


def _merged_rows(
    files: TaskFiles, report: TaskReport, read: set[int], tombstones: TombstoneSet
) -> Iterator[Block | MatchedRows]:
    """The group's rows after the writes. The numbers of their files are added to `read`."""
    task = files.task
    incoming = files.incoming()
    if not files.pending:
        if not task.segments and task.scope is None:
            yield from _blocks(files, files.base, read)
            return
        emitting = replace(incoming, tables=report.emit_input(incoming.tables))
        yield from merge_incoming(
            task.dataset,
            lambda incoming_keys: _blocks(files, files.touched(incoming_keys.hashes), read),
            emitting,
            files.resources.memory,
            live_rows=files.live_rows,
            tombstones=tombstones,
        )
        return
    blocks = _with_pending(files, report, read, tombstones)
    if not task.segments and task.scope is None:
        yield from blocks
        return
    yield from merge_incoming(
        task.dataset,
        lambda _: blocks,
        incoming,
        files.resources.memory,
        live_rows=files.live_rows,
        tombstones=tombstones,
    )


def _blocks(files: TaskFiles, numbers: Sequence[int], read: set[int]) -> Iterator[Block]:
    read.update(numbers)
    return files.blocks(numbers)


def _with_pending(
    files: TaskFiles, report: TaskReport, read: set[int], tombstones: TombstoneSet
) -> Iterator[Block]:
    """All live rows of the group, with its logs and postponed writes merged in.

    Emits their changes now if they could not be emitted at write time.
    """
    task = files.task
    producer = task.dataset.changelog.producer
    has_postponed_writes = any(file.kind is FileKind.POSTPONED for file in files.pending)
    emits_now = has_postponed_writes or producer is ChangelogProducer.DEFERRED
    pending = logged(files.resources.slices.reader, task.dataset, files.pending)
    if emits_now:
        # These rows get their position in the feed now. Postponed rows also get their version, in which they appear;
        # rows of logs were visible before, so they keep theirs.
        meta_names = META_NAMES if has_postponed_writes else (OFFSET_COLUMN,)
        pending = replace(pending, tables=_without(pending.tables, meta_names))
    if has_postponed_writes and producer is ChangelogProducer.INPUT:
        pending = replace(pending, tables=report.emit_input(pending.tables))
    base = partial(_blocks, files, files.base, read)
    for item in merge_incoming(
        task.dataset,
        lambda _: base(),
        pending,
        files.resources.memory,
        live_rows=files.live_rows,
        tombstones=tombstones,
    ):
        if isinstance(item, Block):
            yield item
            continue
        rows = counted(report.emit(item.result)) if emits_now else item.result.rows
        yield from item.kept_blocks()
        yield from _unplaced_blocks(rows, item.former_files())


def _without(tables: Iterable[pa.Table], columns: Sequence[str]) -> Iterator[pa.Table]:
    return (rows.drop_columns(list(columns)) for rows in tables)


def _unplaced_blocks(rows: pa.Table, former: np.ndarray) -> Iterator[Block]:
    """Rows that are not in a file yet, with the file that had their key, so that they keep its bucket."""
    for file in numbers_in(former):
        rows_of_file = rows.filter(pa.array(former == file))
        no_positions = np.full(rows_of_file.num_rows, -1, dtype=np.int64)
        yield Block(file=int(file), positions=no_positions, rows=rows_of_file)


def _place_block(block: Block, placement: Placement, sink: _Sink) -> None:
    if block.file >= 0 and (block.positions >= 0).all():
        sink.write(placement.of_file(block.file), block.rows)
        return
    for slot, part in placement.split(uncounted(block.rows), np.full(block.rows.num_rows, block.file)):
        sink.write(slot, part)
