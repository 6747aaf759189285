"""What waiting requests look at: the head of a dataset, and jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.http.threads import Threads
from app.http.waiting.wakeups import Wakeups
from app.http.waiting.watches import Watches
from app.jobs.values import Job

# Rings are enough for most; so whoever comes may wait for company.
_GATHER_SECONDS: Final = 0.025


class AwaitedJob(NamedTuple):
    """A job that is to have ended or, if `known` is given, to be another than that."""

    job_id: str
    known: Job | None


JobWatches: TypeAlias = Watches[AwaitedJob, Job]


def job_watches(
    wakeups: Wakeups, threads: Threads, find: Callable[[str, Sequence[str]], Sequence[Job]]
) -> JobWatches:
    """`find` gives those of the jobs that there are."""

    def look(tenant_id: str, _: str, awaited: Sequence[AwaitedJob]) -> list[Job | None]:
        jobs = {job.id: job for job in find(tenant_id, list({one.job_id for one in awaited}))}
        return [_if_come(jobs.get(job_id), known) for job_id, known in awaited]

    return Watches(wakeups, threads, look, gather_seconds=_GATHER_SECONDS)


def _if_come(job: Job | None, known: Job | None) -> Job | None:
    if job is None:
        return None
    come = job.state.final if known is None else job != known
    return job if come else None
