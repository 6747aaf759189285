"""The merge task: brings one file group up to date. Runs in Spark's Python processes; never sees Postgres.

`app.lake.storing` says in which way what a write does is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.lake.commit_message import CommitMessage
from app.lake.file_group import FileKind
from app.lake.storing import Storing, storing_of
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
        storing = storing_of(
            task.dataset,
            scoped=task.scope is not None,
            pending=bool(files.pending),
            compact=task.compact,
        )
        match storing:
            case Storing.APPEND:
                return append_rows(files)
            case Storing.MARK:
                return mark_rows(files)
            case Storing.REWRITE:
                return rewrite_files(files)
            case Storing.LOG:
                return write_log(files, FileKind.LOG)
            case Storing.POSTPONE:
                return write_log(files, FileKind.POSTPONED)
