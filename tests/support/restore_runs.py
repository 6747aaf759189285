"""Restores of tables in memory: the use cases of the worker, with tasks that run in this process."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from app.core.catalog.values import Dataset
from app.core.feature.stagers import StagedInput
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.write import RestoreTarget, WriteRequest
from app.core.jobs.values import Job, JobState, Progress
from app.core.timeline.service.version_pins import VersionPins
from app.core.timeline.values import NewCommit
from app.features.versions.service.restores import StageEarlier
from app.features.writes.attempt import Decoded, Merged, Planned
from app.features.writes.service.plan import PlanWrites
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from tests.support.engine import EngineInProcess
from tests.support.retained_versions import RetainedVersions
from tests.support.versioned_tables import VersionedTable, committed_at
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources

_attempts = count(1)


@dataclass(kw_only=True)
class Restorer:
    """Restores one table. `engine.tasks` read what it was; `pinned`: versions, while they were read."""

    versioned: VersionedTable
    memory: MemoryBudget = field(default_factory=lambda: MemoryBudget(bytes_max=2**26))
    kept: RetainedVersions = field(default_factory=RetainedVersions)
    pinned: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resources = TaskResources.on(self.versioned.table.storage, self.memory)
        self.engine = EngineInProcess(resources=self.resources, meanwhile=self._note_pins)

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.versioned.dataset

    def _note_pins(self) -> None:
        self.pinned += self.kept.readers.values()

    def stage(self, earlier: RestoreTarget) -> StagedInput:
        """The input of a restore."""
        job = _job(earlier)
        pins = VersionPins(leases=self.kept, lease_seconds=60, heartbeat_seconds=60)
        staging = StageEarlier(catalog=self, timeline=self.versioned, pins=pins, engine=self.engine)
        return staging.stage(job, f"{self.versioned.table.name}/staged/{job.id}", "tag")

    def run(self, earlier: RestoreTarget) -> NewCommit:
        """Takes the table back; the past notes the version that it makes."""
        made = self.stage(earlier)
        assert made.restored_version is not None
        attempt = f"20260102030405000000-{next(_attempts):06x}-9-0"
        decoded = Decoded(dataset_id="d", inputs=(made,))
        planned = PlanWrites(catalog=self, timeline=self.versioned).run("t", decoded, attempt)
        assert isinstance(planned, Planned)
        merged = planned.merged([MergeHandle(self.resources).run(task) for task in planned.tasks])
        assert isinstance(merged, Merged)
        commit = merged.commit()
        before = self.versioned.table.version
        self.versioned.table.publish(commit.messages)
        if self.versioned.table.version > before:
            self.versioned.note(self.versioned.rows[made.restored_version.result["to_version"]])
        return commit

    def to(self, version: int) -> NewCommit:
        return self.run(RestoreTarget(version=version))


def _job(earlier: RestoreTarget) -> Job:
    return Job(
        id=new_id(),
        tenant_id="t",
        dataset_id="d",
        dataset_name="orders",
        instant_id=new_instant_id(),
        kind=JobKind.RESTORE,
        state=JobState.RUNNING,
        request=WriteRequest(operation=Operation.SNAPSHOT, restores=earlier),
        progress=Progress(stage="claimed"),
        attempts=1,
        epoch=1,
        committed_version=None,
        first_offset=None,
        last_offset=None,
        rows=RowCounts(),
        error=None,
        created_at=committed_at(0),
        started_at=None,
        finished_at=None,
        transaction_id=None,
    )
