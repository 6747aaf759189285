"""Waiting for a job to end."""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import AsyncIterator
from typing import Final

from app.api.context import Services
from app.services.model import Job

# A warm write is done within a few of the first looks; a long one is looked at once a second.
POLL_SECONDS_MIN: Final = 0.025
POLL_SECONDS_MAX: Final = 1.0


async def until_final(services: Services, job: Job, seconds: float) -> Job:
    """The job once it has ended, or as it stands after so many seconds (or when the process stops)."""
    deadline = get_running_loop().time() + seconds
    pause = POLL_SECONDS_MIN
    with services.wakeups.bell(job.tenant_id, job.dataset_id) as bell:
        while not job.state.final and not services.wakeups.closed:
            left = deadline - get_running_loop().time()
            if left <= 0:
                break
            await bell.wait(min(pause, left))
            pause = min(pause * 2, POLL_SECONDS_MAX)
            job = await services.threads.run(services.jobs.get, job.tenant_id, job.id)
    return job


async def states(services: Services, job: Job) -> AsyncIterator[Job | None]:
    """The job whenever it is found changed, until it has ended; None where nothing changed for a while."""
    silent_looks = 0
    yield job
    with services.wakeups.bell(job.tenant_id, job.dataset_id) as bell:
        while not job.state.final and not services.wakeups.closed:
            await bell.wait(POLL_SECONDS_MAX)
            known, job = job, await services.threads.run(services.jobs.get, job.tenant_id, job.id)
            silent_looks = silent_looks + 1 if job == known else 0
            if silent_looks == 0:
                yield job
            elif silent_looks % 10 == 0:
                yield None
