"""The table service `services.clustering`: orders the rows of files by some columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Protocol

from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.kind import JobDeclaration
from app.core.jobs.kinds.rewrite import CLUSTERING, ClusteringTask, RewriteResult
from app.core.jobs.values import Job
from app.features.maintenance.service.rewrite_file_groups import RewriteFileGroups
from app.features.maintenance.service.table_service import Due, Measured
from app.features.maintenance.service.touched_groups import DueGroups, TouchedGroups
from app.kernel.commit.clustering_plan import UnorderedGroup, due_groups, plan_clustering
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.clustering import cluster_by
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile
from app.kernel.format.policies import ClusteringPolicy, TableServices


class GroupOrders(Protocol):
    """How much of file groups is in an order."""

    def unordered(
        self, tenant_id: str, dataset_id: str, names: Sequence[str], *, keyed: bool, mark: str
    ) -> list[UnorderedGroup]:
        """The named groups (without a key: the groups of these partitions) with files without this mark."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Clustering:
    """See `TableService`."""

    groups: TouchedGroups
    orders: GroupOrders
    rewrite: RewriteFileGroups
    kind: JobDeclaration[ClusteringTask, RewriteResult] = CLUSTERING

    def policy(self, services: TableServices) -> ClusteringPolicy | None:
        return services.clustering

    def due(self, observation: Observation, measured: Measured) -> Due[ClusteringTask]:
        """The next file groups to put in the policy's order."""
        policy = observation.dataset.definition.services.clustering
        if policy is None:
            return Due(measured=measured)
        unordered, measured = self.groups.measure(observation, measured, partial(self._due_groups, policy))
        if not unordered.file_groups:
            return Due(measured=measured, next_at=unordered.next_at)
        task = ClusteringTask(
            columns=tuple(policy.columns), order=policy.order, file_groups=tuple(unordered.file_groups)
        )
        return Due(task=task, measured=measured, next_at=unordered.next_at)

    def run(self, job: Job, task: ClusteringTask, tag: str) -> None:
        """See `RewriteFileGroups`. Raises InvalidRequest if one of the columns is gone."""
        self.rewrite.run(job, task, tag, self.plan)

    def _due_groups(
        self, policy: ClusteringPolicy, observation: Observation, names: Sequence[str]
    ) -> DueGroups:
        """The groups with at least `unclustered_bytes` of the policy that are not in order."""
        dataset, definition = observation.dataset, observation.dataset.definition
        mark = cluster_by(definition).mark(definition.schema)
        unordered = self.orders.unordered(
            dataset.tenant_id, dataset.id, names, keyed=definition.keyed, mark=mark
        )
        return DueGroups(file_groups=due_groups(definition, unordered, policy.unclustered_bytes))

    @staticmethod
    def plan(
        request: ClusteringTask,
        dataset: DatasetDefinition,
        live: Sequence[DataFile],
        *,
        attempt: str,
        data_prefix: str,
        planned_at: datetime | None,
    ) -> list[MergeTask]:
        """The tasks: file groups not in the order. Raises InvalidRequest if one of the columns is gone."""
        return plan_clustering(
            dataset,
            live,
            cluster_by(dataset, request.columns, request.order),
            partitions=request.partitions,
            file_groups=request.file_groups,
            attempt=attempt,
            data_prefix=data_prefix,
            planned_at=planned_at,
        )
