"""Waiting for a job to end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

from app.http.context import Services
from app.jobs.handlers.job_watches import AwaitedJob
from app.jobs.values import Job

_SILENCE_SECONDS: Final = 10.0


async def until_final(services: Services, job: Job, seconds: float) -> Job:
    """The job once it has ended, or as it stands after so many seconds (or when the process stops)."""
    if job.state.final or seconds <= 0:
        return job
    with services.job_polls.join(job.tenant_id, job.dataset_id) as waiter:
        ended = await waiter.wait(AwaitedJob(job.id, None), seconds)
    if ended is not None:
        return ended
    return await services.threads.run(services.jobs.get, job.tenant_id, job.id)


async def states(services: Services, job: Job) -> AsyncIterator[Job | None]:
    """The job whenever it is found changed, until it has ended; None where nothing changed for a while."""
    yield job
    with services.job_polls.join(job.tenant_id, job.dataset_id) as waiter:
        while not job.state.final and not services.subscriptions.closed:
            changed = await waiter.wait(AwaitedJob(job.id, job), _SILENCE_SECONDS)
            job = changed or job
            yield changed
