"""The answer to a request that a job was accepted for: 202, or how it ended if the client waits for that."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from litestar import Response

from app.format.errors import HeadwaterError
from app.http.body_stream import JSON
from app.http.context import ApiRequest, Services
from app.http.encoding import encode
from app.http.headers import Preference
from app.http.openapi.operation_docs import Answer
from app.http.problems import JobCancelled, document, fault_document, respond
from app.jobs.handlers.waiting import until_final
from app.jobs.schemas import JobResponse, job_path, job_response
from app.jobs.values import Accepted, Job, JobState

_JOB_HEADERS: Final = {
    "Location": "The job's path.",
    "Idempotency-Replayed": "`true` if an earlier request with the same key made the job.",
}
ACCEPTED_ANSWERS: Final = {
    200: Answer(
        description="Committed within the wait that `Prefer` asked for.",
        content={JSON: JobResponse},
        headers={"Preference-Applied": "The wait that was applied.", **_JOB_HEADERS},
    ),
    202: Answer(
        description="Accepted: the write is durable and its job is on its way.",
        content={JSON: JobResponse},
        headers={"Retry-After": "Seconds after which to look again.", **_JOB_HEADERS},
    ),
}
ACCEPTING_HEADERS: Final = {
    "Idempotency-Key": "Makes a retry safe: the same key with the same request gives the same job.",
    "Prefer": "`wait=N` waits up to N seconds (60 at most) for the job to end.",
}


async def answer_accepted(
    request: ApiRequest, services: Services, accepted: Accepted, preferred: Preference
) -> Response[Any]:
    """The job as it stands once the client has waited as long as it likes; if it failed, its problem."""
    job = accepted.job
    replayed = {"Idempotency-Replayed": "true"} if accepted.replayed else {}
    headers = {**replayed, "Location": job_path(job)}
    if preferred.wait_seconds is not None:
        job = await until_final(services, job, preferred.wait_seconds)
        if job.state.final:
            headers.update(preferred.applied())
    # Also where nobody waits: the job of a replay may have ended long ago.
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        return _failed(request, job, headers)
    if job.state is JobState.SUCCEEDED:
        return Response(encode(job_response(job)), status_code=200, media_type=JSON, headers=headers)
    headers["Retry-After"] = "1"
    return Response(encode(job_response(job)), status_code=202, media_type=JSON, headers=headers)


def _failed(request: ApiRequest, job: Job, headers: dict[str, str]) -> Response[Any]:
    """The problem that ended the job, under its own status, with the job as a member."""
    if job.state is JobState.CANCELLED:
        members = document(
            JobCancelled.code, JobCancelled.title, "the job was cancelled while it was waited for", {}
        )
    elif job.error is not None:
        members = fault_document(job.error)
    else:
        members = document(HeadwaterError.code, HeadwaterError.title, "the job failed without saying why", {})
    return respond(request, {**members, "job": msgspec.to_builtins(job_response(job), enc_hook=str)}, headers)
