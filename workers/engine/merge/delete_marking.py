"""Merges with deletion vectors: new rows go to new files, and deletion vectors delete the rows that they replace."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import partial

import msgspec
import numpy as np

from app.infra.files.deletion_vector_file import VectorReader, write_vectors
from app.infra.files.slices.file_slice import Block
from app.infra.files.slices.slice_merge import IncomingKeys, MatchedRows, merge_incoming
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.small_files import small_files_to_rewrite
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.deletion_vector import union
from app.kernel.format.paths import Folder
from app.kernel.format.rows.meta_columns import resolved, stored_schema
from app.kernel.format.rows.placement import Placement, numbers_in
from app.kernel.sql.conditions.prune import RowFilter
from workers.engine.merge.task_report import TaskReport
from workers.engine.task_files import TaskFiles


def mark_rows(files: TaskFiles) -> CommitMessage:
    """Merges the incoming rows. Only small files are rewritten. Raises CorruptFile, StorageFull, InvalidRequest."""
    task = files.task
    placement = Placement(task.dataset, task.slot, task.files)
    positions_by_file: dict[int, list[np.ndarray]] = defaultdict(list)
    small_files: set[int] = set()
    with files.data_sink() as sink, files.changelog_sink() as changelog:
        report = TaskReport(files, changelog)
        incoming = files.incoming()
        for item in merge_incoming(
            task.dataset,
            partial(_touched, files, small_files),
            incoming,
            files.resources.memory,
            live_rows=files.live_rows,
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
        marked_files = _relisted(
            files, {number: np.concatenate(parts) for number, parts in positions_by_file.items()}
        )
        removed_paths = tuple(
            task.files[number].path for number in sorted({*positions_by_file, *small_files})
        )
        return report.message(removed_paths=removed_paths, new_files=(*marked_files, *sink.finish()))


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


def _relisted(files: TaskFiles, positions_by_file: dict[int, np.ndarray]) -> list[DataFile]:
    """The files that lost rows, with their new vectors; a file without live rows is not listed again."""
    reader = VectorReader(files.resources.storage)
    deletions_by_path = {}
    for number, positions in sorted(positions_by_file.items()):
        file = files.task.files[number]
        before = None if file.deletion_vector is None else reader.read(file.deletion_vector)
        after = union(before, positions)
        if len(after) < file.row_count:
            deletions_by_path[file.path] = (file, after)
    path = files.path(Folder.DELETES, files.task.slot)
    vectors = write_vectors(
        files.resources.storage, path, {name: after for name, (_, after) in deletions_by_path.items()}
    )
    return [
        msgspec.structs.replace(file, deletion_vector=vectors[name])
        for name, (file, _) in deletions_by_path.items()
    ]
