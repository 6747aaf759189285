"""Table services on a table of files: the use case as it is, with writers that come in between."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.declared import AnyTask
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import CompactionTask
from app.core.jobs.values import Job, JobState, Progress
from app.core.timeline.values import Fenced, NewCommit, Published, WritesRunning
from app.features.maintenance.service.compaction import Compaction
from app.features.maintenance.service.publish_in_slot import PublishInSlot, SlotRules
from app.features.maintenance.service.rewrite_file_groups import RewriteFileGroups, RewritePlan
from app.infra.files.slices.vector_rebase import RebaseFiles
from app.infra.identifiers import new_id
from app.kernel.commit.conflict import Conflicted, check_conflicts
from app.kernel.commit.merge_bundle import MergeBundle, MergedBundle
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.engine_task import EngineTask, Result
from app.kernel.format.file_group import DataFile
from app.kernel.format.instant import RowCounts
from tests.support.groups_of_files import GroupsOfFiles
from tests.support.lake_table import LakeTable

AT_ONCE = SlotRules(slot_seconds=0.001, pause_seconds=0.001, try_seconds=0.0, try_seconds_max=0.0)
_MOMENT = datetime(2026, 11, 22, tzinfo=UTC)


@dataclass(kw_only=True)
class ServedTable(GroupsOfFiles):
    """Catalogue, timeline and engine of a service on one table.

    `meanwhile` is called when the service has written its files, and `in_turn` whenever it is to publish: what they
    write was committed first. `waits`: how often it finds writes running before that.
    """

    table: LakeTable
    meanwhile: Callable[[], None] = lambda: None
    in_slot: Callable[[], None] = lambda: None
    waits: int = 0
    published: list[NewCommit] = field(default_factory=list)
    tasks: list[MergeTask] = field(default_factory=list)
    ended: int = 0

    def serve(
        self,
        request: AnyTask | None = None,
        plan: RewritePlan[Any] = Compaction.plan,
        replans_max: int = 3,
    ) -> NewCommit:
        """Runs a service, a compaction by default, and returns what it has published."""
        request = request or CompactionTask()
        service = RewriteFileGroups(
            catalog=self,
            timeline=self,
            engine=self,
            rebase=RebaseFiles(self.table.storage),
            publish=PublishInSlot(timeline=self, writers_max=1, rules=AT_ONCE),
            replans_max=replans_max,
        )
        before = len(self.published)
        service.run(self._job(request), request, "tag", plan)
        [commit] = self.published[before:]
        return commit

    def _job(self, request: AnyTask) -> Job:
        self.table.attempts += 1
        return Job(
            id=new_id(), tenant_id="t", dataset_id="d", dataset_name="orders",
            kind=JobKind(request.kind), state=JobState.RUNNING,
            instant_id=f"20260102030405000000-{self.table.attempts:06x}",
            request=request, progress=Progress(stage="claimed"), attempts=1, epoch=1, committed_version=None,
            first_offset=None, last_offset=None, rows=RowCounts(), error=None, created_at=_MOMENT,
            started_at=None, finished_at=None, transaction_id=None,
        )  # fmt: skip

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return Dataset(
            id="d", tenant_id="t", definition=self.table.dataset, version=self.table.version,
            next_offset=self.table.next_offset, created_at=_MOMENT, committed_at=None,
        )  # fmt: skip

    def files_at(self, version: int) -> Sequence[DataFile]:
        assert version == self.table.version
        return list(self.table.files.values())

    def live_files(
        self, tenant_id: str, dataset_id: str, version: int, file_groups: Sequence[str] | None
    ) -> list[DataFile]:
        assert version == self.table.version
        found = (
            file
            for file in self.table.files.values()
            if file_groups is None or file.file_group in file_groups
        )
        return sorted(found, key=lambda file: file.path)

    def progress(self, tag: str) -> tuple[int, int]:
        return 0, 0

    def cancel(self, tag: str) -> None:
        pass

    def run(self, tasks: Sequence[EngineTask[Result]], tag: str) -> list[Result]:
        assert self.table.run is not None
        bundles = [task for task in tasks if isinstance(task, MergeBundle)]
        results = [MergedBundle(messages=tuple(self.table.run(bundle.tasks))) for bundle in bundles]
        self.tasks += [task for bundle in bundles for task in bundle.tasks]
        self.meanwhile()
        return cast(list[Result], results)

    def publish_in_slot(
        self, tenant_id: str, commit: NewCommit, slot_seconds: float
    ) -> Published | Conflicted | Fenced | WritesRunning:
        if self.waits:
            self.waits -= 1
            return WritesRunning(groups=1)
        self.in_slot()
        version = self.table.version
        verdict = check_conflicts(
            commit.messages,
            [change for change in self.table.window if change.version > commit.read_version],
            head_version=version,
        )
        if isinstance(verdict, Conflicted):
            return verdict
        self.published.append(commit)
        self.table.publish(commit.messages)
        return Published(
            version=self.table.version,
            first_offset=self.table.next_offset,
            next_offset=self.table.next_offset,
        )

    def release_slot(self, tenant_id: str, dataset_id: str) -> None:
        self.ended += 1

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        raise AssertionError("no answer was lost")


def result_of(commit: NewCommit) -> dict[str, int]:
    """The result of the job of the service."""
    [outcome] = commit.outcomes
    return msgspec.to_builtins(outcome.result)
