"""Merges with deletion vectors: new rows go to new files, and deletion vectors delete the rows that they replace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import numpy as np

from app.infra.files.slices.file_slice import Block
from app.infra.files.slices.incoming import IncomingKeys
from app.infra.files.slices.slice_merge import MatchedRows, merge_incoming
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.small_files import small_files_to_rewrite
from app.kernel.format.rows.meta_columns import resolved, stored_schema
from app.kernel.format.rows.placement import Placement, numbers_in
from app.kernel.sql.conditions.prune import RowFilter
from workers.engine.merge.marked_files import marked_files
from workers.engine.merge.task_report import TaskReport
from workers.engine.merge.tombstone_files import TombstoneFiles
from workers.engine.task_files import TaskFiles


def mark_rows(files: TaskFiles) -> CommitMessage:
    """Merges the incoming rows. Only small files are rewritten. Raises CorruptFile, StorageFull, InvalidRequest."""
    task = files.task
    placement = Placement(task.dataset, task.slot, task.files)
    positions_by_file: dict[int, list[np.ndarray]] = defaultdict(list)
    small_files: set[int] = set()
    with files.ordered_sink() as sink, files.changelog_sink() as changelog:
        report = TaskReport(files, changelog)
        tombstone_files = TombstoneFiles(files)
        incoming = files.incoming()
        for item in merge_incoming(
            task.dataset,
            partial(_touched, files, small_files),
            incoming,
            files.resources.memory,
            live_rows=files.live_rows,
            tombstones=tombstone_files.tombstones,
        ):
            for block in item.kept_blocks() if isinstance(item, MatchedRows) else (item,):
                if block.file in small_files:
                    sink.write(placement.of_file(block.file), block.rows)
            if not isinstance(item, MatchedRows):
                continue
            report.place(item, placement, sink)
            is_deletion = ~item.result.stays
            for number in numbers_in(item.files[is_deletion]):
                if int(number) not in small_files:
                    positions_by_file[int(number)].append(
                        item.positions[is_deletion & (item.files == number)]
                    )
        if report.failed or not report.changed:
            return report.empty_message()
        ended_paths, new_tombstones = tombstone_files.finish(placement)
        marked = marked_files(
            files, {number: np.concatenate(parts) for number, parts in positions_by_file.items()}
        )
        removed_paths = tuple(
            task.files[number].path for number in sorted({*positions_by_file, *small_files})
        )
        return report.message(
            removed_paths=(*removed_paths, *ended_paths),
            new_files=(*marked, *sink.finish(), *new_tombstones),
        )


def _touched(files: TaskFiles, small_files: set[int], incoming_keys: IncomingKeys) -> Iterator[Block]:
    """Blocks with the touched rows: found by key with a lookup, or all that may be in the scope.

    Small files are read whole, and their numbers added to `small_files`.
    """
    task = files.task
    if task.by_value:
        # All rows are read once: no file is rewritten.
        yield from files.blocks(files.base if len(incoming_keys.hashes) else ())
        return
    keys = None if task.scope is not None else incoming_keys.keys()
    if keys is None:
        yield from files.blocks(files.touched(incoming_keys.hashes), _sought(files, incoming_keys))
        return
    small_files.update(small_files_to_rewrite(task.dataset, task.files, len(incoming_keys.hashes)))
    yield from files.blocks(sorted(small_files))
    large_files = [number for number in files.base if number not in small_files]
    schema = stored_schema(task.dataset)
    base = [task.files[number] for number in large_files]
    for match in files.resources.lookup.find_rows(base, keys, task.dataset.record_key, schema):
        file = base[match.file]
        rows = resolved(match.rows, file.written_version, file.first_offset)
        yield Block(file=large_files[match.file], positions=match.positions, rows=rows)


def _sought(files: TaskFiles, incoming_keys: IncomingKeys) -> RowFilter | None:
    """The rows that the filter of a scope selects, if no keys are looked up as well."""
    scope = files.task.scope
    if scope is None or scope.where is None or len(incoming_keys.hashes):
        return None
    return RowFilter(where=scope.where, schema=files.task.dataset.schema)
