"""Runs the jobs of table services that rewrite file groups without changing a row: compactions, clusterings."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.jobs.engine import Engine, merge
from app.core.jobs.kinds.declared import KINDS, instant_action
from app.core.jobs.kinds.rewrite import RewriteRequest, RewriteResult
from app.core.jobs.values import Job
from app.core.timeline.ports import VersionRows
from app.core.timeline.service.live_groups import LiveGroups
from app.core.timeline.values import Fenced, JobOutcome, NewCommit, Published
from app.features.maintenance.service.publish_in_slot import PublishInSlot
from app.infra.files.slices.vector_rebase import RebaseFiles
from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.conflict import Conflicted
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import DatasetDefinition, TableType
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.instant import RowCounts
from app.kernel.format.paths import attempt_name, dataset_prefix

_Request = TypeVar("_Request", bound=RewriteRequest)
_Request_contra = TypeVar("_Request_contra", bound=RewriteRequest, contravariant=True)

_log = logging.getLogger(__name__)


class RewritePlan(Protocol[_Request_contra]):
    """Plans what a service of one kind rewrites."""

    def __call__(
        self,
        request: _Request_contra,
        dataset: DatasetDefinition,
        live: Sequence[DataFile],
        *,
        attempt: str,
        data_prefix: str,
        planned_at: datetime | None,
    ) -> list[MergeTask]:
        """Tasks with `compact`, each of another file group, over some of the `live` files; none if nothing is due.

        `live`: all files of the table, or of those of its file groups that are planned again. `planned_at`: the least
        time of a later commit, where there are tombstones.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class RewriteFileGroups:
    """Runs jobs beside writes, which neither wait for them nor conflict with them.

    `replans_max`: how often file groups that writes have changed meanwhile are planned again, before they are left out.
    """

    catalog: DatasetLookup
    timeline: VersionRows
    engine: Engine
    rebase: RebaseFiles
    publish: PublishInSlot
    replans_max: int

    def run(self, job: Job, task: _Request, tag: str, plan: RewritePlan[_Request]) -> None:
        """Raises NotFound, CorruptFile, StorageFull, EngineStopped, and what `plan` raises."""
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        work = _Rewrite(job=job, request=task, plan=plan, dataset=dataset)
        self._write(work, self._of_partitions(work), tag)
        try:
            while True:
                outcome = self.publish.run(job.tenant_id, work.commit())
                match outcome:
                    case Conflicted():
                        self._replan_on_head(work, outcome, tag)
                    case Fenced():
                        _log.info("%s %s is no longer ours", job.kind.value, tag)
                        return
                    case Published():
                        _log.info("%s %s ended at version %d", job.kind.value, tag, outcome.version)
                        return
        finally:
            self.publish.end(job.tenant_id, job.dataset_id)

    def _of_partitions(self, work: _Rewrite[_Request]) -> list[DataFile]:
        """The files of the partitions that the job names, or of the table."""
        groups = LiveGroups(
            timeline=self.timeline,
            tenant_id=work.job.tenant_id,
            dataset_id=work.job.dataset_id,
            version=work.dataset.version,
            kinds=tuple(FileKind),
        ).reached(work.dataset.definition, where=None, globs=work.request.partitions)
        return [file for files in groups.batches() for file in files]

    def _write(self, work: _Rewrite[_Request], live: Sequence[DataFile], tag: str) -> None:
        """Plans over these files, runs the tasks, and adds their messages."""
        job = work.job
        has_tombstones = any(file.kind is FileKind.TOMBSTONE for file in live)
        tasks = work.plan(
            work.request,
            work.dataset.definition,
            live,
            attempt=work.next_attempt(),
            data_prefix=dataset_prefix(job.tenant_id, job.dataset_id),
            planned_at=self.timeline.next_commit_time(job.tenant_id, job.dataset_id)
            if has_tombstones
            else None,
        )
        for task, message in zip(tasks, merge(self.engine, tasks, tag), strict=True):
            work.add(task, message)

    def _replan_on_head(self, work: _Rewrite[_Request], found: Conflicted, tag: str) -> None:
        """Adapts the conflicting groups to the version of the head: rebases or rewrites them, or leaves them out."""
        dataset = self.catalog.get(work.job.tenant_id, work.job.dataset_id)
        evolved = dataset.definition.schema.id != work.dataset.definition.schema.id
        work.dataset, work.read_version = dataset, found.head_version
        changed = [work.done[group] for group in found.file_groups]
        about = sorted({file.file_group for each in changed for file in each.task.files})
        live = self.timeline.live_files(work.job.tenant_id, work.job.dataset_id, found.head_version, about)
        if not evolved:
            by_path = {file.path: file for file in live}
            changed = [each for each in changed if not self._rebased(work, each, by_path)]
        if not changed:
            return
        # The rewrite takes long, so writes are let through meanwhile.
        self.publish.end(work.job.tenant_id, work.job.dataset_id)
        for each in changed:
            del work.done[each.task.file_group]
        if work.plans > self.replans_max:
            work.left += len(changed)
            return
        groups = {file.file_group for each in changed for file in each.task.files}
        taken = work.rewritten()
        reread = [file for file in live if file.file_group in groups and file.path not in taken]
        self._write(work, reread, tag)

    def _rebased(self, work: _Rewrite[_Request], each: _DoneTask, live: Mapping[str, DataFile]) -> bool:
        """Rebases a task if its files have only lost rows since: these are deleted from the new files, too. A small
        write may have taken all rows of some files along to its own. False if not.
        """
        lost = [file for file in each.task.files if file.path not in live]
        marks = work.dataset.definition.table_type is TableType.MERGE_ON_READ
        if not each.task.keeps_rows or len(lost) == len(each.task.files) or (lost and not marks):
            return False
        message = self.rebase.rebase(each.task, each.written, live, work.next_name())
        if message is None:
            return False
        each.message = message
        return True


@dataclass(kw_only=True, slots=True)
class _DoneTask:
    """A task, the message that it has written, and the rebased message to publish."""

    task: MergeTask
    written: CommitMessage
    message: CommitMessage


@dataclass(kw_only=True, slots=True)
class _Rewrite(Generic[_Request]):
    """The state of a run. `done`: by file group. `plans`: how often it has planned. `left`: groups that it left out."""

    job: Job
    request: _Request
    plan: RewritePlan[_Request]
    dataset: Dataset
    read_version: int = field(init=False)
    done: dict[str, _DoneTask] = field(default_factory=dict)
    plans: int = 0
    left: int = 0
    _names: int = 0

    def __post_init__(self) -> None:
        self.read_version = self.dataset.version

    def next_attempt(self) -> str:
        """The name of the next attempt."""
        self.plans += 1
        return self.next_name()

    def next_name(self) -> str:
        """A part of file names: another instant, epoch or attempt never writes the same path."""
        self._names += 1
        return attempt_name(self.job.instant, self.job.epoch, self._names)

    def add(self, task: MergeTask, message: CommitMessage) -> None:
        """Adds the message of a task."""
        self.done[task.file_group] = _DoneTask(task=task, written=message, message=message)

    def rewritten(self) -> set[str]:
        """Paths of the files that are replaced."""
        return {path for each in self.done.values() for path in each.message.removed}

    def commit(self) -> NewCommit:
        """The commit to publish."""
        action = instant_action(self.request)
        if action is None:
            raise TypeError(f"job {self.job.id} makes no version: {self.job.kind.value}")
        return NewCommit(
            dataset_id=self.job.dataset_id,
            action=action,
            read_version=self.read_version,
            schema_id=self.dataset.definition.schema.id,
            outcomes=(
                JobOutcome(
                    claim=self.job.claim,
                    instant_id=self.job.instant,
                    counts=RowCounts(),
                    result=self._result(),
                ),
            ),
            messages=tuple(self.done[group].message for group in sorted(self.done)),
        )

    def _result(self) -> dict[str, Any]:
        messages = [each.message for each in self.done.values()]
        added = [file for message in messages for file in message.added]
        return KINDS[self.job.kind].stored(
            RewriteResult(
                file_groups=len(messages),
                file_groups_left=self.left,
                files_added=len(added),
                files_removed=sum(len(message.removed) for message in messages),
                bytes=sum(file.size_bytes for file in added),
            )
        )
