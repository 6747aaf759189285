"""Polls of jobs, for requests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.core.jobs.values import Job
from app.http.limits.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.infra.sharing.next_flight import NextFlight

# Most requests end by an announcement, so the poll for a new one can be delayed and shared with others.
_GATHER_SECONDS: Final = 0.1
# An announcement is often one of several datasets. Their polls are one query.
_TOGETHER_SECONDS: Final = 0.003


class AwaitedJob(NamedTuple):
    """A job that a request waits for: until it has ended or, with `previous`, until it differs from that state."""

    job_id: str
    previous: Job | None


JobPolls: TypeAlias = SharedPolls[AwaitedJob, Job]
FindJobs: TypeAlias = Callable[[str, Sequence[str]], Sequence[Job]]
"""Called in a thread. Returns the jobs of a tenant with these ids that exist."""


def job_polls(subscriptions: Subscriptions, threads: Threads, find: FindJobs) -> JobPolls:
    """The polls of all datasets."""
    finds = NextFlight[str, str, Sequence[Job]](
        lambda tenant_id, ids: threads.run_for(tenant_id, find, tenant_id, ids),
        gather_seconds=_TOGETHER_SECONDS,
    )

    async def fetch(tenant_id: str, _: str, awaited_jobs: Sequence[AwaitedJob]) -> list[Job | None]:
        ids = {each.job_id for each in awaited_jobs}
        jobs = {job.id: job for job in await finds.join(tenant_id, ids)}
        return [_if_changed(jobs.get(job_id), previous) for job_id, previous in awaited_jobs]

    return SharedPolls(subscriptions, fetch, is_silent=_is_unannounced, gather_seconds=_GATHER_SECONDS)


def _is_unannounced(awaited_job: AwaitedJob) -> bool:
    """Whether it may come without an announcement: only ends of jobs are announced, their progress is not."""
    return awaited_job.previous is not None


def _if_changed(job: Job | None, previous: Job | None) -> Job | None:
    if job is None:
        return None
    differs = job.state.final if previous is None else job != previous
    return job if differs else None
