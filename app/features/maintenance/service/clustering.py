"""The table service `services.clustering`: which file groups are due, the job for them, and its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.core.feature.reconcilers import Observation
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.rewrite import ClusteringTask
from app.features.maintenance.service.file_group_reconciler import DueGroups
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
    """What is due, the job for it, and the plan of the job."""

    orders: GroupOrders
    kind: JobKind = JobKind.CLUSTERING

    def policy(self, services: TableServices) -> ClusteringPolicy | None:
        return services.clustering

    def due(self, observation: Observation, names: Sequence[str]) -> DueGroups:
        """The groups with at least `unclustered_bytes` of the policy that are not in order."""
        dataset, definition = observation.dataset, observation.dataset.definition
        policy = definition.services.clustering
        if policy is None:
            return DueGroups()
        mark = cluster_by(definition).mark(definition.schema)
        found = self.orders.unordered(dataset.tenant_id, dataset.id, names, keyed=definition.keyed, mark=mark)
        return DueGroups(file_groups=due_groups(definition, found, policy.unclustered_bytes))

    def task(self, services: TableServices, file_groups: Sequence[str]) -> ClusteringTask:
        """Puts these groups in the policy's order."""
        policy = services.clustering
        if policy is None:
            raise TypeError("no policy, no clustering")
        return ClusteringTask(
            columns=tuple(policy.columns), order=policy.order, file_groups=tuple(file_groups)
        )

    @staticmethod
    def plan(
        request: ClusteringTask,
        dataset: DatasetDefinition,
        live: Sequence[DataFile],
        *,
        attempt: str,
        data_prefix: str,
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
        )
