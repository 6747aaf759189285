"""HTTP: the metrics of the process that answers, and the datasets of a tenant in numbers."""

from __future__ import annotations

from typing import Final

from litestar import get
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.features.monitoring.schemas import (
    OverviewHours,
    OverviewPage,
    ReadLargestOptions,
    ReadOverviewHoursOptions,
    ReadOverviewOptions,
    StoredDatasets,
    dataset_overview,
)
from app.features.monitoring.service.overview import TenantOverview
from app.features.monitoring.service.stored_datasets import LargestDatasets
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import TEXT, documented
from app.http.response import ApiResponse

_PLAIN: Final = "text/plain"
# The framework adds the charset.
_MEDIA_TYPE: Final = f"{_PLAIN}; version=0.0.4"


@get(
    "/metrics",
    operation_id="read_metrics",
    summary="Read the metrics of a process",
    tags=["metrics"],
    opt=needs(KeyScope.OPERATE, whole_tenant=True)
    | documented(description="The metrics.", content={_PLAIN: TEXT}),
)
async def read_metrics(
    metrics: Provided[CollectorRegistry], threads: Provided[Threads]
) -> ApiResponse[bytes]:
    """Returns the metrics of the API process that answers, in the text format of Prometheus.

    The process that leads also returns those of the whole service, such as jobs that wait. They name tenants, datasets
    and consumers.
    """
    return ApiResponse(await threads.run(generate_latest, metrics), media_type=_MEDIA_TYPE)


@get(
    "/overview",
    operation_id="read_overview",
    summary="Read all datasets in numbers",
    tags=["overview"],
    opt=needs(KeyScope.READ),
)
async def read_overview(
    options: Provided[ReadOverviewOptions],
    tenant_overview: Provided[TenantOverview],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> OverviewPage:
    """Lists the tenant's datasets by name with rows, bytes, freshness, lag and problems: all, those whose names match a
    pattern, or those with all of some labels.

    It reads no file and sums up no list of files: the numbers of a table are those of its last sample, about a minute
    after its last commit.
    """
    return await threads.run(_overview, tenant_overview, principal, options)


def _overview(overview: TenantOverview, principal: Principal, options: ReadOverviewOptions) -> OverviewPage:
    page, numbers = overview.page(
        principal, options.selection, page_size=options.page_size, page_token=options.page_token
    )
    items = [dataset_overview(each, numbers.get(each.id)) for each in page.items]
    return OverviewPage(items=items, next_page_token=page.next_token)


@get(
    "/overview/hours",
    operation_id="read_overview_hours",
    summary="Read writes by hour",
    tags=["overview"],
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def read_overview_hours(
    options: Provided[ReadOverviewHoursOptions],
    tenant_overview: Provided[TenantOverview],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> OverviewHours:
    """Returns the writes and their rows of each of the last hours, of one dataset or of all that the key sees whole.

    Hours are those of UTC. They are kept for eight days.
    """
    hours = await threads.run(tenant_overview.hours, granted_datasets, options.dataset, count=options.hours)
    return OverviewHours(items=hours)


@get(
    "/storage/datasets",
    operation_id="list_stored_datasets",
    summary="List the datasets that store most",
    tags=["overview"],
    opt=needs(KeyScope.OPERATE, whole_tenant=True),
)
async def list_stored_datasets(
    options: Provided[ReadLargestOptions],
    largest_datasets: Provided[LargestDatasets],
    threads: Provided[Threads],
) -> StoredDatasets:
    """Lists the datasets of all tenants that store most, the largest first, and sums up what all store.

    The numbers are samples, which are made each minute.
    """
    items = list(await threads.run(largest_datasets.get, options.limit))
    return StoredDatasets(items=items, sums=await threads.run(largest_datasets.sums))
