"""Jobs: list, get, wait, follow, cancel."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Final

from litestar import get, post
from litestar.params import QueryParameter
from litestar.response import Stream

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.jobs.handlers.waiting import JobWaiter
from app.core.jobs.schemas import JobId, JobPage, JobResponse, ListJobsOptions, job_response
from app.core.jobs.service.jobs import Jobs
from app.core.jobs.values import Job, JobFilter
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.event_stream import EVENT_STREAM, HEARTBEAT, STREAM, event_stream
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import EventTypes, documented
from app.http.parameters.headers import WAIT_SECONDS_MAX, Preference
from app.http.response import ApiResponse, encode_json
from app.http.waiting.request_credential import RequestCredential

_TAGS: Final = ["jobs"]


@get(
    "/jobs",
    operation_id="list_jobs",
    summary="List jobs",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def list_jobs(
    options: Provided[ListJobsOptions],
    jobs: Provided[Jobs],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> JobPage:
    """Lists the tenant's jobs of every dataset and kind, the newest first."""
    page = await threads.run(
        jobs.list,
        granted_datasets,
        options.dataset,
        JobFilter(
            kinds=None if options.kind is None else tuple(options.kind),
            states=None if options.state is None else tuple(options.state),
            unresolved=options.unresolved,
        ),
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return JobPage(items=[job_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/jobs/{job:str}",
    operation_id="get_job",
    summary="Get a job, or wait for it",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="The job as it stands.",
        headers={
            "Retry-After": "Seconds after which to poll the job; absent once it has ended.",
            "Preference-Applied": "The wait that was applied.",
        },
    ),
)
async def get_job(
    job: JobId,
    preference: Provided[Preference],
    jobs: Provided[Jobs],
    waiter: Provided[JobWaiter],
    principal: Provided[Principal],
    threads: Provided[Threads],
    wait: Annotated[
        int,
        QueryParameter(
            ge=0, le=WAIT_SECONDS_MAX, description="Seconds to wait for the job to end before the response."
        ),
    ] = 0,
) -> ApiResponse[JobResponse]:
    """Returns a job as it stands, however it ended: a failed job is a response here, not an error."""
    current_job = await threads.run(jobs.get, principal.tenant_id, job)
    current_job = await waiter.until_final(current_job, wait or preference.wait_seconds or 0)
    headers = {} if current_job.state.final else {"Retry-After": "1"}
    if not wait:
        headers.update(preference.applied())
    return ApiResponse(job_response(current_job), headers=headers)


@get(
    "/jobs/{job:str}/events",
    operation_id="follow_job",
    summary="Follow a job",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True)
    | {STREAM: True}
    | documented(
        description="Server-sent events `state`, each with the job.",
        content={EVENT_STREAM: EventTypes({"state": [JobResponse]})},
    ),
)
async def follow_job(
    job: JobId,
    jobs: Provided[Jobs],
    waiter: Provided[JobWaiter],
    principal: Provided[Principal],
    credential: Provided[RequestCredential],
    threads: Provided[Threads],
) -> Stream:
    """Sends the job as it stands, and again whenever it changes, until it has ended."""
    current_job = await threads.run(jobs.get, principal.tenant_id, job)
    return event_stream(_events(waiter, current_job), credential)


async def _events(waiter: JobWaiter, job: Job) -> AsyncGenerator[bytes, None]:
    async with aclosing(waiter.states(job)) as states:
        async for state in states:
            if state is None:
                yield HEARTBEAT
            else:
                yield b"event: state\ndata: " + encode_json(job_response(state)) + b"\n\n"


@post(
    "/jobs/{job:str}/cancel",
    operation_id="cancel_job",
    summary="Cancel a job",
    tags=_TAGS,
    status_code=200,
    opt=needs(KeyScope.WRITE, only_ends=True) | documented(problems=[409]),
)
async def cancel_job(
    job: JobId, jobs: Provided[Jobs], granted_datasets: Provided[GrantedDatasets], threads: Provided[Threads]
) -> JobResponse:
    """Cancels a queued or running job: nothing of it will be visible. One that has ended is refused with 409."""
    return job_response(await threads.run(jobs.cancel, granted_datasets, job))
