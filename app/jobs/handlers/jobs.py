"""Jobs: look, wait, follow, cancel."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, TypeAlias

from litestar import Response, get, post
from litestar.params import PathParameter, QueryParameter
from litestar.response import Stream

from app.http.body_stream import JSON
from app.http.context import ApiRequest, Services, services_of, tenant_of
from app.http.encoding import encode
from app.http.event_stream import EVENT_STREAM, HEARTBEAT, event_stream
from app.http.headers import WAIT_SECONDS_MAX, preference
from app.http.openapi.operation_docs import TEXT, Answer, documented
from app.jobs.handlers.waiting import states, until_final
from app.jobs.schemas import JobResponse, job_response
from app.jobs.values import Job

_TAGS: Final = ["jobs"]

JobId: TypeAlias = Annotated[str, PathParameter(description="The id of a job.")]


@get(
    "/jobs/{job:str}",
    operation_id="get_job",
    summary="Get a job, or wait for it",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The job as it stands.", content={JSON: JobResponse})}, problems=[400, 404]
    ),
)
async def get_job(
    request: ApiRequest,
    job: JobId,
    wait: Annotated[
        int,
        QueryParameter(
            ge=0, le=WAIT_SECONDS_MAX, description="Seconds to wait for the job to end before answering."
        ),
    ] = 0,
) -> Response[Any]:
    """The job as it stands, however it ended: a failed job is an answer here, not an error."""
    services = services_of(request)
    preferred = preference(request.headers)
    found = await services.threads.run(services.jobs.get, tenant_of(request), job)
    found = await until_final(services, found, wait or preferred.wait_seconds or 0)
    headers = {} if found.state.final else {"Retry-After": "1"}
    if not wait:
        headers.update(preferred.applied())
    return Response(encode(job_response(found)), media_type=JSON, headers=headers)


@get(
    "/jobs/{job:str}/events",
    operation_id="follow_job",
    summary="Follow a job",
    tags=_TAGS,
    opt=documented(
        {
            200: Answer(
                description="Server-sent events `state`, each with the job.", content={EVENT_STREAM: TEXT}
            )
        },
        problems=[404],
    ),
)
async def follow_job(request: ApiRequest, job: JobId) -> Stream:
    """Sends the job whenever it changes, and ends with it."""
    services = services_of(request)
    found = await services.threads.run(services.jobs.get, tenant_of(request), job)
    return event_stream(_events(services, found))


async def _events(services: Services, job: Job) -> AsyncIterator[bytes]:
    async for state in states(services, job):
        yield (
            HEARTBEAT if state is None else b"event: state\ndata: " + encode(job_response(state)) + b"\n\n"
        )


@post(
    "/jobs/{job:str}/cancel",
    operation_id="cancel_job",
    summary="Cancel a job",
    tags=_TAGS,
    status_code=200,
    opt=documented({200: Answer(description="Cancelled.", content={JSON: JobResponse})}, problems=[404, 409]),
)
async def cancel_job(request: ApiRequest, job: JobId) -> Response[Any]:
    """Cancels a queued or running job: nothing of it will be visible. One that has ended answers 409."""
    services = services_of(request)
    found = await services.threads.run(services.jobs.cancel, tenant_of(request), job)
    return Response(encode(job_response(found)), media_type=JSON)
