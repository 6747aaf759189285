"""Waiting for a job to end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from app.core.jobs.handlers.job_polls import AwaitedJob, JobPolls
from app.core.jobs.values import Job
from app.http.limits.threads import Threads
from app.http.waiting.request_credential import RequestCredential
from app.http.waiting.subscriptions import Subscriptions

_SILENCE_SECONDS: Final = 10.0


@dataclass(frozen=True, kw_only=True, slots=True)
class JobWaits:
    """What requests wait for jobs with. `get_job`: the job of a tenant with an id. Raises NotFound."""

    polls: JobPolls
    get_job: Callable[[str, str], Job]
    threads: Threads
    subscriptions: Subscriptions


@dataclass(frozen=True, slots=True)
class JobWaiter:
    """Waits for jobs without holding a thread, as long as the credential of the request permits it.

    `show`: a job as the principal of the request may see it.
    """

    waits: JobWaits
    credential: RequestCredential
    show: Callable[[Job], Job]

    async def until_final(self, job: Job, seconds: float) -> Job:
        """The job once it has ended, or its state after `seconds`, or when the process stops.

        Raises CredentialEnded, and Unavailable if the credential cannot be checked.
        """
        if job.state.final or seconds <= 0:
            return await self._shown(job)
        waits = self.waits
        with waits.polls.join(job.tenant_id, job.dataset_id, self.credential) as waiter:
            current_job = await waiter.wait(AwaitedJob(job.id, None), seconds)
        if current_job is None:
            current_job = await waits.threads.run(waits.get_job, job.tenant_id, job.id)
        await self.credential.check()
        return await self._shown(current_job)

    async def until_all_final(self, jobs: Sequence[Job], seconds: float) -> None:
        """Waits for jobs of several datasets that end at once. Raises as `until_final` does."""
        for job in jobs:
            self.credential.shows(job.dataset_id)
        await self.until_final(jobs[0], seconds)

    async def states(self, job: Job) -> AsyncGenerator[Job | None, None]:
        """The job whenever it has changed, until it has ended; None after 10 s without a change.

        Raises CredentialEnded.
        """
        self.credential.shows(job.dataset_id)
        yield await self._shown(job)
        waits = self.waits
        with waits.polls.join(job.tenant_id, job.dataset_id, self.credential) as waiter:
            while not job.state.final and not waits.subscriptions.closed:
                new_state = await waiter.wait(AwaitedJob(job.id, job), _SILENCE_SECONDS)
                job = new_state or job
                yield new_state and await self._shown(new_state)

    async def _shown(self, job: Job) -> Job:
        return job if job.error is None else await self.waits.threads.run(self.show, job)
