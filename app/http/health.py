"""Liveness and readiness of the process, and the health of the whole service."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import StrEnum
from typing import Annotated, Final, Self

import msgspec
from litestar import get

from app.access.tenants.values import KeyScope
from app.http.auth import PUBLIC, needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import ApiResponse

_TAGS: Final = ["health"]


class Liveness(msgspec.Struct, frozen=True, kw_only=True):
    """The process is running."""

    live: Annotated[bool, msgspec.Meta(examples=[True])]
    """Always true."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that this process needs. Without a `required` one it is not ready."""

    name: Annotated[str, msgspec.Meta(examples=["database"])]
    """What is checked."""
    ok: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether it works."""
    required: bool = True
    """Whether no request should be sent to this process without it."""
    detail: str = ""
    """What is wrong; empty where it works."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether this process can take requests, with a check for each thing that it needs."""

    ready: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether all required checks passed."""
    checks: list[Check]
    """The checks."""


class Severity(StrEnum):
    """How much a fault matters: `critical`, if requests or writes stop; `warning`, if they go on."""

    CRITICAL = "critical"
    WARNING = "warning"


class ServiceState(StrEnum):
    """`failing`, if a critical check is not ok; `degraded`, if another one is not ok."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILING = "failing"


class ServiceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the service needs."""

    ok: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether it works."""
    severity: Severity
    """How much it matters while it does not work."""
    detail: str = ""
    """What is wrong; empty where it works."""


class ServiceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the whole service works: its processes, its servers and its storage."""

    state: ServiceState
    """The worst of the checks."""
    checks: dict[str, ServiceCheck]
    """The checks, by what they check."""

    @classmethod
    def of(cls, checks: Mapping[str, ServiceCheck]) -> Self:
        """The health with these checks."""
        severities = {check.severity for check in checks.values() if not check.ok}
        state = (
            ServiceState.FAILING
            if Severity.CRITICAL in severities
            else ServiceState.DEGRADED
            if severities
            else ServiceState.OK
        )
        return cls(state=state, checks=dict(checks))


@get(
    "/health/live",
    operation_id="get_liveness",
    summary="Is the process alive?",
    tags=_TAGS,
    opt={PUBLIC: True},
)
async def get_liveness() -> Liveness:
    """Responds as long as the process runs; it checks nothing else."""
    return Liveness(live=True)


@get(
    "/health/ready",
    operation_id="get_readiness",
    summary="Can this process take requests?",
    tags=_TAGS,
    opt={PUBLIC: True, **documented(description="Ready.", statuses={503: "Not ready; the checks say why."})},
)
async def get_readiness(readiness: Provided[Callable[[], Awaitable[list[Check]]]]) -> ApiResponse[Readiness]:
    """Ready once this process has found the database with the schema of its release, until it is about to stop. The
    answer takes 2 s at most, and does not depend on workers or other parts of the service.
    """
    checks = await readiness()
    ready = all(check.ok for check in checks if check.required)
    return ApiResponse(Readiness(ready=ready, checks=checks), status_code=200 if ready else 503)


@get(
    "/health/service",
    operation_id="get_service_health",
    summary="Does the whole service work?",
    tags=_TAGS,
    opt=needs(KeyScope.OPERATE, whole_tenant=True)
    | documented(description="Ok or degraded.", statuses={503: "Failing; the checks say why."}),
)
async def get_service_health(
    service_health: Provided[Callable[[], ServiceHealth]], threads: Provided[Threads]
) -> ApiResponse[ServiceHealth]:
    """Checks all that the service needs: the database, workers, their Spark and their loops, jobs, the storage, the
    disk, and Redis.
    """
    health = await threads.run(service_health)
    failing = health.state is ServiceState.FAILING
    return ApiResponse(health, status_code=503 if failing else 200)
