"""Polls of jobs, for requests that wait for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.http.limits.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.values import Job

# Most requests end by an announcement, so the poll for a new one can be delayed and shared with others.
_GATHER_SECONDS: Final = 0.025


class AwaitedJob(NamedTuple):
    """A job that a request waits for: until it has ended or, with `known`, until it differs from that state."""

    job_id: str
    known: Job | None


JobPolls: TypeAlias = SharedPolls[AwaitedJob, Job]


def job_polls(
    subscriptions: Subscriptions, threads: Threads, find: Callable[[str, Sequence[str]], Sequence[Job]]
) -> JobPolls:
    """`find` returns the jobs of a tenant with these ids that exist."""

    def fetch(tenant_id: str, _: str, awaited: Sequence[AwaitedJob]) -> list[Job | None]:
        jobs = {job.id: job for job in find(tenant_id, list({one.job_id for one in awaited}))}
        return [_if_changed(jobs.get(job_id), known) for job_id, known in awaited]

    return SharedPolls(subscriptions, threads, fetch, gather_seconds=_GATHER_SECONDS)


def _if_changed(job: Job | None, known: Job | None) -> Job | None:
    if job is None:
        return None
    changed = job.state.final if known is None else job != known
    return job if changed else None
