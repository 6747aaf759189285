"""Writing files anew: copy on write, writes with a scope on logs, and compaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from app.files.data_sink import DataSink
from app.files.file_slice import Block
from app.files.log_file import logged
from app.files.slice_merge import Incoming, Met, meet
from app.lake.commit_message import CommitMessage
from app.lake.dataset import ChangelogProducer
from app.lake.file_group import FileKind
from app.lake.meta_columns import META_NAMES
from app.lake.placement import Placement
from workers.engine.find_files import files_to_read
from workers.engine.task_files import TaskFiles
from workers.engine.told import Told


def rewrite_files(files: TaskFiles) -> CommitMessage:
    """Merges the incoming rows into the group's files, and logs and postponed writes along with them.

    Raises CorruptFile, StorageFull, InvalidRequest.
    """
    task = files.task
    placement = Placement(task.dataset, task.slot, task.files)
    read: set[int] = set()
    with files.data_sink() as sink, files.changelog_sink() as changelog:
        told = Told(files, changelog)
        for item in _met(files, told, read):
            if isinstance(item, Met):
                fresh = told.take(item.result)
                _place(item, fresh, placement, sink)
            elif item.file >= 0:
                sink.write(placement.of_file(item.file), item.rows)
            else:
                _place_rows(item.rows, np.full(item.rows.num_rows, -1), placement, sink)
        if told.failed or not (told.changed or files.pending or task.compact):
            return told.nothing()
        removed = [task.files[number].path for number in sorted(read)] + [file.path for file in files.pending]
        return told.message(removed=tuple(removed), added=sink.finish())


def _met(files: TaskFiles, told: Told, read: set[int]) -> Iterator[Block | Met]:
    """The group's rows after the writes; `read` gets the numbers of the files they came from."""
    task = files.task
    incoming = files.incoming()
    if not files.pending:
        if not task.segments and task.scope is None:
            yield from _blocks(files, files.base, read)
            return
        given = _replaced_tables(incoming, told.given(incoming.tables))
        yield from meet(
            task.dataset,
            lambda wanted: _blocks(files, files_to_read(files, wanted.hashes), read),
            given,
            files.place.memory,
            live_rows=files.live_rows,
        )
        return
    merged = _with_pending(files, told, read)
    if not task.segments and task.scope is None:
        yield from merged
        return
    yield from meet(task.dataset, lambda _: merged, incoming, files.place.memory, live_rows=files.live_rows)


def _replaced_tables(incoming: Incoming, tables: Iterator[pa.Table]) -> Incoming:
    return Incoming(tables=tables, intents=incoming.intents, rows=incoming.rows, in_scope=incoming.in_scope)


def _blocks(files: TaskFiles, numbers: Sequence[int], read: set[int]) -> Iterator[Block]:
    read.update(numbers)
    return files.blocks(numbers)


def _with_pending(files: TaskFiles, told: Told, read: set[int]) -> Iterator[Block]:
    """All live rows of the group, with its logs and postponed writes merged in.

    What those changed is told now if it could not be told when they were written.
    """
    task = files.task
    producer = task.dataset.changelog.producer
    postponed = any(file.kind is FileKind.POSTPONED for file in files.pending)
    untold = postponed or producer is ChangelogProducer.DEFERRED
    pending = logged(files.place.slices.reader, task.dataset, files.pending)
    if untold:
        # These rows get their place in the feed now, and with it the version that they appear in.
        pending = _replaced_tables(pending, (rows.drop_columns(list(META_NAMES)) for rows in pending.tables))
    if postponed and producer is ChangelogProducer.INPUT:
        pending = _replaced_tables(pending, told.given(iter(pending.tables)))
    base = partial(_blocks, files, files.base, read)
    for item in meet(task.dataset, lambda _: base(), pending, files.place.memory, live_rows=files.live_rows):
        if isinstance(item, Block):
            yield item
            continue
        rows = told.tell(item.result) if untold else item.result.rows
        yield from item.kept_blocks()
        yield _loose(rows)


def _loose(rows: pa.Table) -> Block:
    """Rows that stand in no file yet."""
    return Block(file=-1, positions=np.full(rows.num_rows, -1, dtype=np.int64), rows=rows)


def _place(met: Met, fresh: pa.Table, placement: Placement, sink: DataSink) -> None:
    """Writes the rows that stay and the new ones to their buckets."""
    for block in met.kept_blocks():
        if block.file >= 0:
            sink.write(placement.of_file(block.file), block.rows)
        else:
            _place_rows(block.rows, np.full(block.rows.num_rows, -1), placement, sink)
    replaced = met.result.replaced
    former = np.full(len(replaced), -1, dtype=np.int64)
    former[replaced >= 0] = met.files[replaced[replaced >= 0]]
    _place_rows(fresh, former, placement, sink)


def _place_rows(rows: pa.Table, former: np.ndarray, placement: Placement, sink: DataSink) -> None:
    if rows.num_rows == 0:
        return
    for slot, part in placement.split(rows, former):
        sink.write(slot, part)
