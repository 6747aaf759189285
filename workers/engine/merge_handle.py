"""The merge task: brings one file group up to date. Runs in Spark's Python processes; never sees Postgres.

There are four ways to store what a write does, and the dataset and the write decide which: rows without a key are
appended; where old rows are not looked up, writes become logs; where they are, old rows are marked in deletion
vectors, or their files are written anew.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.lake.commit_message import CommitMessage
from app.lake.dataset import BucketMode, TableType
from app.lake.file_group import FileKind
from app.lake.write_plan import MergeTask
from workers.engine.append_rows import append_rows
from workers.engine.mark_rows import mark_rows
from workers.engine.rewrite_files import rewrite_files
from workers.engine.task_files import Place, TaskFiles
from workers.engine.write_log import write_log


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """Merges staged rows into a file group of one dataset."""

    place: Place

    def run(self, task: MergeTask) -> CommitMessage:
        """Writes the group's new files and its changelog. Raises CorruptFile, StorageFull, InvalidRequest."""
        files = TaskFiles(task=task, place=self.place)
        dataset = task.dataset
        if task.compact or (task.scope is not None and files.pending):
            return rewrite_files(files)
        if task.scope is None:
            if dataset.bucket.mode is BucketMode.POSTPONE and not dataset.bucket.fixed_now:
                return write_log(files, FileKind.POSTPONED)
            if not dataset.keyed:
                return append_rows(files)
            if not dataset.looks_up:
                return write_log(files, FileKind.LOG)
        if dataset.table_type is TableType.MERGE_ON_READ and dataset.looks_up:
            return mark_rows(files)
        return rewrite_files(files)
