"""The plans of table services, for `RunTableService`: the tasks of a compaction and of a clustering."""

from __future__ import annotations

from collections.abc import Sequence

from app.core.jobs.kinds.declared import AnyTask
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.kernel.commit.clustering_plan import plan_clustering
from app.kernel.commit.compaction_plan import plan_compaction
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.clustering import cluster_by
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile


def compaction(
    request: AnyTask,
    dataset: DatasetDefinition,
    live: Sequence[DataFile],
    *,
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """The tasks of a compaction: file groups with something to fold."""
    if not isinstance(request, CompactionTask):
        raise TypeError(f"no compaction: {request.kind}")
    return plan_compaction(
        dataset,
        live,
        partitions=request.partitions,
        file_groups=request.file_groups,
        attempt=attempt,
        data_prefix=data_prefix,
    )


def clustering(
    request: AnyTask,
    dataset: DatasetDefinition,
    live: Sequence[DataFile],
    *,
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """The tasks of a clustering: file groups not in the order. Raises InvalidRequest if one of its columns is gone."""
    if not isinstance(request, ClusteringTask):
        raise TypeError(f"no clustering: {request.kind}")
    return plan_clustering(
        dataset,
        live,
        cluster_by(dataset, request.columns, request.order),
        partitions=request.partitions,
        file_groups=request.file_groups,
        attempt=attempt,
        data_prefix=data_prefix,
    )
