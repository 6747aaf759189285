"""Liveness and readiness of the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Final

import msgspec
from litestar import get

from app.http.auth import PUBLIC
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
    """One thing that the service needs. Without a `required` one it is not ready, without others slower."""

    name: Annotated[str, msgspec.Meta(examples=["database"])]
    """What is checked."""
    ok: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether it works."""
    required: bool = True
    """Whether the service cannot serve without it."""
    detail: str = ""
    """What is wrong; empty where it works."""


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the service can serve, with a check for each thing that it needs."""

    ready: Annotated[bool, msgspec.Meta(examples=[True])]
    """Whether all required checks passed."""
    checks: list[Check]
    """The checks."""


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
    summary="Can the service serve?",
    tags=_TAGS,
    opt={PUBLIC: True, **documented(description="Ready.", statuses={503: "Not ready; the checks say why."})},
)
async def get_readiness(
    readiness: Provided[Callable[[], list[Check]]], threads: Provided[Threads]
) -> ApiResponse[Readiness]:
    """Ready if the database is reachable and has the schema of this release, a worker is alive, has executors of Spark
    and no loop that stands still, and the storage can be written and has space.
    """
    checks = await threads.run(readiness)
    ready = all(check.ok for check in checks if check.required)
    return ApiResponse(Readiness(ready=ready, checks=checks), status_code=200 if ready else 503)
