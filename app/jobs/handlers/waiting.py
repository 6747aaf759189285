"""Waiting for a job to end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Final

from app.http.threads import Threads
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.handlers.job_polls import AwaitedJob, JobPolls
from app.jobs.values import Job

_SILENCE_SECONDS: Final = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobWaiter:
    """Waits for jobs without holding a thread. `get_job`: the job of a tenant with an id. Raises NotFound."""

    polls: JobPolls
    get_job: Callable[[str, str], Job]
    threads: Threads
    subscriptions: Subscriptions

    async def until_final(self, job: Job, seconds: float) -> Job:
        """The job once it has ended, or its state after `seconds`, or when the process stops."""
        if job.state.final or seconds <= 0:
            return job
        with self.polls.join(job.tenant_id, job.dataset_id) as waiter:
            ended = await waiter.wait(AwaitedJob(job.id, None), seconds)
        if ended is not None:
            return ended
        return await self.threads.run(self.get_job, job.tenant_id, job.id)

    async def states(self, job: Job) -> AsyncIterator[Job | None]:
        """The job whenever it has changed, until it has ended; None after 10 s without a change."""
        yield job
        with self.polls.join(job.tenant_id, job.dataset_id) as waiter:
            while not job.state.final and not self.subscriptions.closed:
                changed = await waiter.wait(AwaitedJob(job.id, job), _SILENCE_SECONDS)
                job = changed or job
                yield changed
