"""The merge task: applies writes to one file group. Runs in Spark's Python processes; never accesses Postgres.

`app.kernel.commit.storing` determines the form in which the result is stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_files
from itertools import groupby

from msgspec.structs import replace

from app.infra.files.data_sink import ChangesSection
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.merge_bundle import MergeBundle, MergedBundle
from app.kernel.commit.storing import Storing, storing_of
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.file_group import FileKind, partition_of, shared_changes
from app.kernel.format.paths import Folder
from workers.engine.merge.append_write import append_rows
from workers.engine.merge.delete_marking import mark_rows
from workers.engine.merge.file_rewrite import rewrite_files
from workers.engine.merge.late_rows import LateRows
from workers.engine.merge.log_write import write_log
from workers.engine.task_files import TaskFiles, TaskResources


@dataclass(frozen=True, slots=True)
class MergeHandle:
    """Merges staged rows into a file group of one dataset."""

    resources: TaskResources

    def run_all(self, bundle: MergeBundle) -> MergedBundle:
        """Runs the tasks one after another. Small changes of several groups of a partition go to one file.

        Raises what `run` raises.
        """
        lookup = self.resources.lookup
        before = lookup.seconds
        with self.resources.storage.synced_together() as storage:
            together = MergeHandle(replace_files(self.resources, storage=storage))
            messages = together._run_all(bundle)
        return MergedBundle(messages=tuple(messages), lookup_seconds=lookup.seconds - before)

    def _run_all(self, bundle: MergeBundle) -> list[CommitMessage]:
        messages: list[CommitMessage] = []
        for _, same in groupby(bundle.tasks, key=lambda task: partition_of(task.file_group)):
            tasks = list(same)
            messages += [self.run(tasks[0])] if len(tasks) == 1 else self._sharing(tasks)
        return messages

    def _sharing(self, tasks: Sequence[MergeTask]) -> list[CommitMessage]:
        first = TaskFiles(task=tasks[0], resources=self.resources)
        with first.changelog_file(shared_changes(partition_of(tasks[0].file_group))) as changelog_file:
            outcomes = []
            for task in tasks:
                own = TaskFiles(task=task, resources=self.resources).changelog_file(task.file_group)
                section = ChangesSection(changelog_file, own)
                outcomes.append((self.run(task, section), section.first_change))
            if any(message.conflicts for message, _ in outcomes):
                # The commit will be made again without the writes that fail.
                return [message for message, _ in outcomes]
            changelog = changelog_file.finish()
        return [
            message if at is None else replace(message, changelog=changelog, first_change=at)
            for message, at in outcomes
        ]

    def run(self, task: MergeTask, section: ChangesSection | None = None) -> CommitMessage:
        """Writes the group's new files and its changelog. Raises CorruptFile, StorageFull, InvalidRequest."""
        plain = TaskFiles(task=task, resources=self.resources, section=section)
        late = LateRows(task, self.resources.storage, lambda: plain.path(Folder.QUARANTINE, task.slot))
        return late.reported(self._stored(replace_files(plain, select=late.taken)))

    def _stored(self, files: TaskFiles) -> CommitMessage:
        task = files.task
        storing = storing_of(
            task.dataset,
            has_scope=task.scope is not None,
            pending=bool(files.pending),
            compact=task.compact,
            divides=task.divides,
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
