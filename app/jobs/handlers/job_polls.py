"""Polls of jobs, for requests that wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple, TypeAlias

from app.http.limits.threads import Threads
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.values import Job

# Most requests end by an announcement, so the poll for a new one can be delayed and shared with others.
_GATHER_SECONDS: Final = 0.1
# An announcement is often one of several datasets. Their polls are one query.
_TOGETHER_SECONDS: Final = 0.003


class AwaitedJob(NamedTuple):
    """A job that a request waits for: until it has ended or, with `known`, until it differs from that state."""

    job_id: str
    known: Job | None


JobPolls: TypeAlias = SharedPolls[AwaitedJob, Job]
FindJobs: TypeAlias = Callable[[str, Sequence[str]], Sequence[Job]]
"""Called in a thread. Returns the jobs of a tenant with these ids that exist."""


def job_polls(subscriptions: Subscriptions, threads: Threads, find: FindJobs) -> JobPolls:
    """The polls of all datasets."""
    finds = SharedFinds(threads, find)

    async def fetch(tenant_id: str, _: str, awaited: Sequence[AwaitedJob]) -> list[Job | None]:
        jobs = await finds.find(tenant_id, {one.job_id for one in awaited})
        return [_if_changed(jobs.get(job_id), known) for job_id, known in awaited]

    return SharedPolls(subscriptions, fetch, gather_seconds=_GATHER_SECONDS)


class SharedFinds:
    """One query for the jobs of a tenant that are looked for within some milliseconds. Belongs to the event loop."""

    def __init__(self, threads: Threads, find: FindJobs) -> None:
        self._threads = threads
        self._find = find
        self._next: dict[str, tuple[set[str], asyncio.Task[dict[str, Job]]]] = {}

    async def find(self, tenant_id: str, job_ids: Collection[str]) -> dict[str, Job]:
        """The jobs by id, and others. Raises what the query raises."""
        if tenant_id not in self._next:
            wanted: set[str] = set()
            self._next[tenant_id] = (
                wanted,
                asyncio.create_task(self._run(tenant_id, wanted), name="find-jobs"),
            )
        wanted, running = self._next[tenant_id]
        wanted.update(job_ids)
        # One that is cancelled must not cancel the others.
        return await asyncio.shield(running)

    async def _run(self, tenant_id: str, wanted: set[str]) -> dict[str, Job]:
        await asyncio.sleep(_TOGETHER_SECONDS)
        del self._next[tenant_id]
        return {job.id: job for job in await self._threads.run(self._find, tenant_id, list(wanted))}


def _if_changed(job: Job | None, known: Job | None) -> Job | None:
    if job is None:
        return None
    changed = job.state.final if known is None else job != known
    return job if changed else None
