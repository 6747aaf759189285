"""HTTP: the lineage of a tenant's datasets."""

from __future__ import annotations

from typing import Final

from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.service import GrantedDatasets
from app.features.lineage.schemas import LineageResponse, ReadLineageOptions, lineage_response
from app.features.lineage.service import Lineage
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

_TAGS: Final = ["lineage"]


@get(
    "/lineage",
    operation_id="read_lineage",
    summary="Read where rows come from and go to",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def read_lineage(
    options: Provided[ReadLineageOptions],
    lineage: Provided[Lineage],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> LineageResponse:
    """Returns a graph of datasets, views, sources, webhooks, exports that have not ended, consumers and shares.

    It has what the key may see: of a dataset that it sees in part, the webhooks and exports that send no more than
    that.
    """
    graph = await threads.run(lineage.graph, granted_datasets, options.dataset, columns=options.columns)
    return lineage_response(graph)
