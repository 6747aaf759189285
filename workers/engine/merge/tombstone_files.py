"""The tombstone files that a task writes, marks and removes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from app.infra.files.slices.tombstone_set import TombstoneSet
from app.kernel.commit.small_files import small_files_to_rewrite
from app.kernel.format.file_group import DataFile, FileKind, Slot
from app.kernel.format.rows.placement import Placement
from app.kernel.format.rows.tombstones import expiries, instant, tombstone_schema
from workers.engine.merge.marked_files import marked_files
from workers.engine.task_files import TaskFiles


class TombstoneFiles:
    """The files of the group's tombstones, before and after the merges of a task."""

    def __init__(self, files: TaskFiles) -> None:
        self._files = files
        self.tombstones: TombstoneSet = files.tombstones()

    def finish(self, placement: Placement) -> tuple[tuple[str, ...], tuple[DataFile, ...]]:
        """The paths of the files that are removed or marked, and the new entries. Raises CorruptFile, StorageFull.

        New tombstones go to a new file of the bucket of their keys, with those of its small files. A task that rewrites
        the group rewrites all. In a file that is rewritten, tombstones whose time is over are left out: no later commit
        is compared with them. `placement`: that of the task's rows.
        """
        tombstones, task = self.tombstones, self._files.task
        new = list(placement.split_tombstones(*tombstones.new()))
        rewritten = self._rewritten(new, placement)
        marked = {
            number: tombstones.ended(number) for number in tombstones.ended_files() if number not in rewritten
        }
        if not (new or rewritten or marked):
            return (), ()
        with self._files.data_sink(FileKind.TOMBSTONE, tombstone_schema(task.dataset)) as sink:
            for number in rewritten:
                for rows in self._left(number):
                    sink.write(placement.of_file(number), rows)
            for slot, rows in new:
                sink.write(slot, rows)
            files = (*marked_files(self._files, marked), *sink.finish())
        return tuple(task.files[number].path for number in sorted({*rewritten, *marked})), files

    def _rewritten(self, new: Sequence[tuple[Slot, pa.Table]], placement: Placement) -> list[int]:
        """The numbers of the files that are rewritten. `new`: the new tombstones, by their slots."""
        task = self._files.task
        if task.compact or task.divides:
            return self.tombstones.numbers
        new_rows: Counter[Slot] = Counter()
        for slot, rows in new:
            new_rows[slot] += rows.num_rows
        rewritten = []
        for slot, row_count in new_rows.items():
            numbers = [number for number in self.tombstones.numbers if placement.of_file(number) == slot]
            files = [task.files[number] for number in numbers]
            small = small_files_to_rewrite(task.dataset, files, row_count, FileKind.TOMBSTONE)
            rewritten += [numbers[at] for at in small]
        return sorted(rewritten)

    def _left(self, number: int) -> Iterator[pa.Table]:
        now = instant(self._files.task.planned_at)
        for rows in self.tombstones.left(number):
            yield rows.filter(pa.array(np.asarray(expiries(rows) >= now)))
