"""HTTP: the metrics of the process that answers."""

from __future__ import annotations

from typing import Final

from litestar import get
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from app.access.tenants.values import KeyScope
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
