"""HTTP: requests for compactions, clusterings and analyses."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

import msgspec
from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.core.jobs.kinds.analysis import AnalysisTask
from app.core.jobs.kinds.rewrite import ClusteringTask, CompactionTask
from app.features.maintenance.service.requests import TableServiceRequests
from app.http.auth import needs
from app.http.dependencies import Provided
from app.kernel.format.clustering import COLUMNS_MAX, cluster_by
from app.kernel.format.policies import ClusterOrder


class CreateCompaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to compact."""

    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the partitions that match one; all by default."""


_COMPACTION_DEFAULTS: Final = CreateCompaction()


@post(
    "/datasets/{dataset:str}/compactions",
    operation_id="create_compaction",
    summary="Compact a dataset",
    tags=["compactions"],
    status_code=202,
    opt=needs(KeyScope.MANAGE),
)
async def create_compaction(
    path_dataset: Provided[Dataset],
    table_service_requests: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateCompaction] = _COMPACTION_DEFAULTS,
) -> JobReply:
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    It changes no row, and runs beside writes, to which it yields. It makes postponed writes visible, and with the
    producer `deferred` adds the changes of logs to the feed. If there is nothing to fold, no version is made. The job's
    `result` has what was rewritten.
    """
    task = msgspec.convert(data, CompactionTask, from_attributes=True)
    return await acceptance.accept(path_dataset, partial(table_service_requests.start, path_dataset, task))


class CreateClustering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to order rows; by default as `services.clustering` of the dataset says."""

    columns: Annotated[list[str], msgspec.Meta(min_length=1, max_length=COLUMNS_MAX)] | None = None
    """The columns to order rows by."""
    order: ClusterOrder | None = None
    """The curve or order in which the columns are combined."""
    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the partitions that match one; all by default."""


_CLUSTERING_DEFAULTS: Final = CreateClustering()


@post(
    "/datasets/{dataset:str}/clusterings",
    operation_id="create_clustering",
    summary="Cluster a dataset",
    tags=["clusterings"],
    status_code=202,
    opt=needs(KeyScope.MANAGE),
)
async def create_clustering(
    path_dataset: Provided[Dataset],
    table_service_requests: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateClustering] = _CLUSTERING_DEFAULTS,
) -> JobReply:
    """Rewrites files with their rows ordered by some columns, so that filters on these columns read fewer files.

    It changes no row, adds nothing to the feed, and runs beside writes, to which it yields. Files that have that order
    already are not rewritten; if all have it, no version is made. The job's `result` has what was rewritten.
    """
    by = cluster_by(path_dataset.definition, data.columns, data.order)
    task = ClusteringTask(
        columns=by.columns,
        order=by.order,
        partitions=None if data.partitions is None else tuple(data.partitions),
    )
    return await acceptance.accept(path_dataset, partial(table_service_requests.start, path_dataset, task))


@post(
    "/datasets/{dataset:str}/analyses",
    operation_id="create_analysis",
    summary="Analyze a dataset",
    tags=["analyses"],
    status_code=202,
    opt=needs(KeyScope.MANAGE),
)
async def create_analysis(
    path_dataset: Provided[Dataset],
    table_service_requests: Provided[TableServiceRequests],
    acceptance: Provided[Acceptance],
) -> JobReply:
    """Counts the distinct values of each column of the latest version, for the statistics of the dataset.

    It reads all rows, beside writes, and makes no version. The counts are estimates, and replace those of earlier
    analyses.
    """
    start = partial(table_service_requests.start, path_dataset, AnalysisTask())
    return await acceptance.accept(path_dataset, start)
