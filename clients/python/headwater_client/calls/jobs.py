"""Jobs: their list, their states, waiting, cancelling, and starting jobs."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import msgspec

from headwater_client.models import Dataset, Job, JobPage
from headwater_client.problem import FINAL_STATES, JobUnfinished, problem_of_job
from headwater_client.transport.connection import WAIT_SECONDS_MAX, Connection, decoded, job_path
from headwater_client.transport.driver import Body
from headwater_client.transport.pages import JSON


class JobCalls(Connection):
    """Lists, reads, awaits, cancels and starts jobs."""

    def jobs(
        self,
        dataset: Dataset | str | None = None,
        *,
        kinds: Sequence[str] | None = None,
        states: Sequence[str] | None = None,
        unresolved: bool = False,
    ) -> AsyncGenerator[Job, None]:
        """The tenant's jobs, the newest first; of one dataset, of some kinds, such as `write`, or in some states.

        `unresolved`: the failed ones that no later job of the same dataset and kind has made up for.
        """
        wanted = {
            "dataset": dataset.id if isinstance(dataset, Dataset) else dataset,
            "kind": None if kinds is None else list(kinds),
            "state": None if states is None else list(states),
            "unresolved": "true" if unresolved else None,
        }
        return self._items("/jobs", JobPage, wanted)

    async def get_job(self, job: Job | str) -> Job:
        """The current state of a job."""
        return await self._job(job, 0)

    async def wait(self, job: Job | str, *, seconds: float = 600) -> Job:
        """The job once it has succeeded. Raises JobUnfinished; Problem if it fails or is cancelled."""
        deadline = time.monotonic() + seconds
        found = job if isinstance(job, Job) else await self.get_job(job)
        while found.state not in FINAL_STATES:
            left = deadline - time.monotonic()
            if left <= 0:
                raise JobUnfinished(found, seconds)
            found = await self._job(found, min(int(left) + 1, WAIT_SECONDS_MAX))
        if problem := problem_of_job(found):
            raise problem
        return found

    async def cancel(self, job: Job | str) -> Job:
        """Cancels a job that has not ended: none of its changes become visible."""
        answer = await self._send("POST", f"{job_path(job)}/cancel")
        return decoded(Job, answer)

    async def _job(self, job: Job | str, wait: int) -> Job:
        answer = await self._get(job_path(job), {"wait": wait} if wait else {}, patience_seconds=wait)
        return decoded(Job, answer)

    async def _start(
        self,
        path: str,
        value: Any = None,
        *,
        body: Body | None = None,
        headers: dict[str, str] | None = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None,
        wait: float,
    ) -> Job:
        """The job that a request starts; with `wait`, once it has succeeded.

        `value` is sent as JSON, instead of `body`. Without a key, the request must be safe to repeat.
        """
        if value is not None:
            body, headers = msgspec.json.encode(value), {"Content-Type": JSON}
        deadline = time.monotonic() + wait
        first_wait = min(int(wait), WAIT_SECONDS_MAX)
        answer = await self._send(
            "POST",
            path,
            body=body,
            params=params,
            headers={
                **(headers or {}),
                **({"Idempotency-Key": idempotency_key} if idempotency_key is not None else {}),
                **({"Prefer": f"wait={first_wait}"} if first_wait else {}),
            },
            repeatable=True,
            patience_seconds=first_wait,
        )
        job = decoded(Job, answer)
        return await self.wait(job, seconds=max(deadline - time.monotonic(), 0)) if wait else job
