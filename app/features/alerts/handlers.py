"""The health of the whole service."""

from __future__ import annotations

from typing import Final

from litestar import get

from app.access.tenants.values import KeyScope
from app.features.alerts.service.health import CheckService
from app.features.alerts.values import ServiceHealth, ServiceState
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import ApiResponse

_TAGS: Final = ["health"]


@get(
    "/health/service",
    operation_id="get_service_health",
    summary="Does the whole service work?",
    tags=_TAGS,
    opt=needs(KeyScope.OPERATE, whole_tenant=True, in_outages=True)
    | documented(description="Ok, degraded or starting.", statuses={503: "Failing; the checks say why."}),
)
async def get_service_health(
    service_health: Provided[CheckService], threads: Provided[Threads]
) -> ApiResponse[ServiceHealth]:
    """Checks all that the service needs: the database, workers, their Spark and their loops, jobs, the storage, the
    disk, and Redis.
    """
    health = await threads.run(service_health.run)
    failing = health.state is ServiceState.FAILING
    return ApiResponse(health, status_code=503 if failing else 200)
