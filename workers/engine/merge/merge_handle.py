"""The merge task: applies writes to one file group. Runs in Spark's Python processes; never accesses Postgres.

`app.commit.storing` determines the form in which the result is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.commit.commit_message import CommitMessage
from app.commit.storing import Storing, storing_of
from app.commit.write_plan import MergeTask
from app.format.file_group import FileKind
from workers.engine.merge.append_write import append_rows
from workers.engine.merge.delete_marking import mark_rows
from workers.engine.merge.file_rewrite import rewrite_files
from workers.engine.merge.log_write import write_log
from workers.engine.task_files import TaskFiles, TaskResources


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """Merges staged rows into a file group of one dataset."""

    resources: TaskResources

    def run(self, task: MergeTask) -> CommitMessage:
        """Writes the group's new files and its changelog. Raises CorruptFile, StorageFull, InvalidRequest."""
        files = TaskFiles(task=task, resources=self.resources)
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
