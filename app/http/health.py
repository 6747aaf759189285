"""Liveness and readiness of the process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Final

import msgspec
from litestar import get

from app.http.auth import PUBLIC
from app.http.dependencies import Provided
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
