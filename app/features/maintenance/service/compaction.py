"""The table service `services.compaction`: rewrites logs and small files as base files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.kind import JobDeclaration
from app.core.jobs.kinds.rewrite import COMPACTION, CompactionTask, RewriteResult
from app.core.jobs.values import Job
from app.features.maintenance.service.rewrite_file_groups import RewriteFileGroups
from app.features.maintenance.service.table_service import Due, Measured
from app.features.maintenance.service.touched_groups import DueGroups, TouchedGroups
from app.kernel.commit.compaction_plan import plan_compaction
from app.kernel.commit.compaction_policy import GroupShape, is_due, next_due_at
from app.kernel.commit.small_files import small_below
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.policies import CompactionPolicy, TableServices


class GroupShapes(Protocol):
    """What file groups consist of."""

    def shapes(
        self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, small_below: int
    ) -> list[GroupShape]:
        """The named groups (without a key: the groups of these partitions) that have something to compact.

        `small_below`: the size in bytes of the least base file that is not small.
        """
        ...


class CommitTimes(Protocol):
    """Commit times of versions."""

    def commit_times(
        self, tenant_id: str, dataset_id: str, versions: Sequence[int]
    ) -> dict[int, datetime]: ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """See `TableService`."""

    groups: TouchedGroups
    shapes: GroupShapes
    commits: CommitTimes
    rewrite: RewriteFileGroups
    kind: JobDeclaration[CompactionTask, RewriteResult] = COMPACTION

    def policy(self, services: TableServices) -> CompactionPolicy | None:
        return services.compaction

    def due(self, observation: Observation, measured: Measured) -> Due[CompactionTask]:
        """The next file groups to compact."""
        due_groups_now, measured = self.groups.measure(observation, measured, self._due_groups)
        task = (
            CompactionTask(file_groups=tuple(due_groups_now.file_groups))
            if due_groups_now.file_groups
            else None
        )
        return Due(task=task, measured=measured, next_at=due_groups_now.next_at)

    def run(self, job: Job, task: CompactionTask, tag: str) -> None:
        """See `RewriteFileGroups`."""
        self.rewrite.run(job, task, tag, self.plan)

    def _due_groups(self, observation: Observation, names: Sequence[str]) -> DueGroups:
        """The groups to compact now. Reads the age of logs only if the policy has `seconds`."""
        dataset, definition = observation.dataset, observation.dataset.definition
        policy = definition.services.compaction
        if policy is None:
            return DueGroups()
        shapes = self.shapes.shapes(
            dataset.tenant_id, dataset.id, names, keyed=definition.keyed, small_below=small_below(definition)
        )
        times: Mapping[int, datetime] = {}
        if policy.seconds is not None:
            oldest = {shape.oldest_log for shape in shapes if shape.oldest_log is not None}
            times = self.commits.commit_times(dataset.tenant_id, dataset.id, sorted(oldest))
        due = {
            shape.file_group for shape in shapes if is_due(policy, definition, shape, times, observation.now)
        }
        later = [shape for shape in shapes if shape.file_group not in due]
        return DueGroups(file_groups=sorted(due), next_at=next_due_at(policy, definition, later, times))

    @staticmethod
    def plan(
        request: CompactionTask,
        dataset: DatasetDefinition,
        live: Sequence[DataFile],
        *,
        attempt: str,
        data_prefix: str,
        planned_at: datetime | None,
    ) -> list[MergeTask]:
        """The tasks: file groups with something to compact."""
        return plan_compaction(
            dataset,
            live,
            partitions=request.partitions,
            file_groups=request.file_groups,
            attempt=attempt,
            data_prefix=data_prefix,
            planned_at=planned_at,
        )
