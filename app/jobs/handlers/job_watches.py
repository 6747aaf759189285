"""What waiting requests look at: the head of a dataset, and jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.http.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.values import Job

# Announcements are enough for most requests, so that a new one may wait for others.
_GATHER_SECONDS: Final = 0.025


class AwaitedJob(NamedTuple):
    """A job that is to have ended or, if `known` is given, to be another than that."""

    job_id: str
    known: Job | None


JobPolls: TypeAlias = SharedPolls[AwaitedJob, Job]


def job_polls(
    subscriptions: Subscriptions, threads: Threads, find: Callable[[str, Sequence[str]], Sequence[Job]]
) -> JobPolls:
    """`find` gives those of the jobs that there are."""

    def fetch(tenant_id: str, _: str, awaited: Sequence[AwaitedJob]) -> list[Job | None]:
        jobs = {job.id: job for job in find(tenant_id, list({one.job_id for one in awaited}))}
        return [_if_changed(jobs.get(job_id), known) for job_id, known in awaited]

    return SharedPolls(subscriptions, threads, fetch, gather_seconds=_GATHER_SECONDS)


def _if_changed(job: Job | None, known: Job | None) -> Job | None:
    if job is None:
        return None
    changed = job.state.final if known is None else job != known
    return job if changed else None
