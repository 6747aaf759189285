"""Whether the process lives, and whether it can serve."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Response, get

from app.http.auth import PUBLIC
from app.http.body_stream import JSON
from app.http.context import ApiRequest, Check, services_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented

_TAGS: Final = ["health"]


class LiveResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The process answers."""

    live: bool


class ReadyResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the service needs, and whether it has it."""

    ready: bool
    checks: list[Check]


@get(
    "/health/live",
    operation_id="get_liveness",
    summary="Is the process alive?",
    tags=_TAGS,
    opt={PUBLIC: True, **documented({200: Answer(description="It is.", content={JSON: LiveResponse})})},
)
async def get_liveness() -> Response[Any]:
    """Answers as long as the process does; asks nothing of anyone."""
    return Response(encode(LiveResponse(live=True)), media_type=JSON)


@get(
    "/health/ready",
    operation_id="get_readiness",
    summary="Can the service serve?",
    tags=_TAGS,
    opt={
        PUBLIC: True,
        **documented(
            {
                200: Answer(description="Ready.", content={JSON: ReadyResponse}),
                503: Answer(description="Not ready; the checks say why.", content={JSON: ReadyResponse}),
            }
        ),
    },
)
async def get_readiness(request: ApiRequest) -> Response[Any]:
    """Ready once the database is reachable and at this release's schema, and a worker is alive."""
    services = services_of(request)
    checks = await services.threads.run(services.readiness)
    ready = all(check.ok for check in checks if check.required)
    response = ReadyResponse(ready=ready, checks=checks)
    return Response(encode(response), status_code=200 if ready else 503, media_type=JSON)
