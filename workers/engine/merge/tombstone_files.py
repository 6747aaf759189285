"""The tombstone files that a task writes, marks and removes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from app.infra.files.slices.tombstone_set import TombstoneSet
from app.kernel.commit.small_files import small_files_to_rewrite
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.rows.tombstones import expiries, instant, tombstone_schema
from workers.engine.merge.marked_files import marked_files
from workers.engine.task_files import TaskFiles


class TombstoneFiles:
    """The files of the group's tombstones, before and after the merges of a task."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files
        self.tombstones: TombstoneSet = files.tombstones()

    def finish(self) -> tuple[tuple[str, ...], tuple[DataFile, ...]]:
        """The paths of the files that are removed or marked, and the new entries. Raises CorruptFile, StorageFull.

        New tombstones go to a new file, with those of small files. A task that rewrites the group rewrites all. In a
        file that is rewritten, tombstones whose time is over are left out: no later commit is compared with them.
        """
        tombstones, task = self.tombstones, self._files.task
        new = tombstones.new()
        rewritten = self._rewritten(new.num_rows)
        marked = {
            number: tombstones.ended(number) for number in tombstones.ended_files() if number not in rewritten
        }
        if not (new.num_rows or rewritten or marked):
            return (), ()
        with self._files.data_sink(FileKind.TOMBSTONE, tombstone_schema(task.dataset)) as sink:
            for rows in (*self._left(rewritten), new):
                sink.write(task.slot, rows)
            files = (*marked_files(self._files, marked), *sink.finish())
        return tuple(task.files[number].path for number in sorted({*rewritten, *marked})), files

    def _rewritten(self, new_rows: int) -> list[int]:
        """The numbers of the files that are rewritten."""
        task = self._files.task
        if task.compact or task.divides:
            return self.tombstones.numbers
        if not new_rows:
            return []
        return small_files_to_rewrite(task.dataset, task.files, new_rows, FileKind.TOMBSTONE)

    def _left(self, numbers: list[int]) -> Iterator[pa.Table]:
        now = instant(self._files.task.planned_at)
        for number in numbers:
            for rows in self.tombstones.left(number):
                yield rows.filter(pa.array(np.asarray(expiries(rows) >= now)))
