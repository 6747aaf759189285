"""The response to a request with a job: 202, or the end of the job if the client waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.errors import JobCancelled
from app.core.jobs.handlers.waiting import JobWaiter
from app.core.jobs.schemas import JobResponse, job_path, job_response
from app.core.jobs.service.request_job import RequestIdentity
from app.core.jobs.values import Accepted, Job, JobState
from app.http.body_stream import JSON
from app.http.in_flight import InFlight
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import Answer
from app.http.parameters.headers import Preference
from app.http.problems import JobFailed, document, fault_document
from app.http.request import JOB_ID
from app.http.response import ApiResponse
from app.kernel.format.errors import HeadwaterError

_JOB_HEADERS: Final = {
    "Location": "The job's path.",
    "Idempotency-Replayed": "`true` if an earlier request with the same key made the job.",
}
ACCEPTED_ANSWERS: Final = {
    200: Answer(
        component="JobSucceeded",
        description="Committed within the wait that `Prefer` requested.",
        content={JSON: JobResponse},
        headers={"Preference-Applied": "The wait that was applied.", **_JOB_HEADERS},
    ),
    202: Answer(
        component="JobAccepted",
        description="Accepted: the request is durable and its job will run.",
        content={JSON: JobResponse},
        headers={"Retry-After": "Seconds after which to poll the job.", **_JOB_HEADERS},
    ),
}


class JobReply(ApiResponse[JobResponse]):
    """The job of a request: 202 while it runs, 200 once it has succeeded."""

    answers: ClassVar[Mapping[int, Answer]] = ACCEPTED_ANSWERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Acceptance:
    """Accepts a request as a job, with its Idempotency-Key, its actor and its preferred wait.

    `state`: of the request, which gets the id of the job.
    """

    idempotency_key: str | None
    preference: Preference
    actor: str
    in_flight: InFlight
    threads: Threads
    waiter: JobWaiter
    state: MutableMapping[str, Any]

    async def accept(self, dataset: Dataset, start: Callable[[str | None, str | None], Accepted]) -> JobReply:
        """Calls `start` with the idempotency key and the actor, in a thread. Raises JobFailed, and what it raises."""
        with self.reserved(dataset.tenant_id, dataset.id):
            outcome = await self.threads.run(start, self.idempotency_key, self.actor)
        return await self.reply(outcome)

    def reserved(self, tenant_id: str, dataset: str) -> AbstractContextManager[None]:
        """Reserves the idempotency key while the request is read and accepted. Raises IdempotencyInFlight.

        `dataset`: its id, or the name of one that the request registers.
        """
        return self.in_flight.reserved(tenant_id, dataset, self.idempotency_key)

    async def reply(self, outcome: Accepted) -> JobReply:
        """The job after the preferred wait. Raises JobFailed with the job's own problem if it failed."""
        self.state[JOB_ID] = outcome.job.id
        return await job_reply(outcome, self.preference, self.waiter)

    def requested(self, kind: str, parameters: Any) -> RequestIdentity:
        """The request for a job of a kind, with its parameters."""
        text = f"{kind} {msgspec.json.encode(parameters).decode()}"
        return RequestIdentity(text=text, idempotency_key=self.idempotency_key, actor=self.actor)


async def job_reply(outcome: Accepted, preference: Preference, waiter: JobWaiter) -> JobReply:
    """The job after the preferred wait. Raises JobFailed with the job's own problem if it failed."""
    job = outcome.job
    replay_header = {"Idempotency-Replayed": "true"} if outcome.is_replay else {}
    headers = {**replay_header, "Location": job_path(job)}
    # Also without a wait: the job of a replayed request may have ended long ago.
    job = await waiter.until_final(job, preference.wait_seconds or 0)
    if preference.wait_seconds is not None and job.state.final:
        headers.update(preference.applied())
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        raise JobFailed(_problem_of(job), headers)
    if job.state is JobState.SUCCEEDED:
        return JobReply(job_response(job), status_code=200, headers=headers)
    headers["Retry-After"] = "1"
    return JobReply(job_response(job), status_code=202, headers=headers)


def _problem_of(job: Job) -> dict[str, Any]:
    """The problem that ended the job, under its own status, with the job as a member."""
    if job.state is JobState.CANCELLED:
        members = document(
            JobCancelled.code, JobCancelled.title, "the job was cancelled while it was waited for", {}
        )
    elif job.error is not None:
        members = fault_document(job.error)
    else:
        members = document(HeadwaterError.code, HeadwaterError.title, "the job failed without saying why", {})
    return {**members, "job": msgspec.to_builtins(job_response(job), enc_hook=str)}
