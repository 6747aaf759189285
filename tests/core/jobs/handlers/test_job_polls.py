"""Polls of jobs: progress is not announced, so it is found by the clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import pytest

from app.core.catalog.values import Dataset
from app.core.jobs.handlers.job_polls import AwaitedJob, job_polls
from app.core.jobs.values import Job, JobState, Progress
from app.http.limits.threads import Threads
from app.http.waiting import shared_polls
from app.http.waiting.subscriptions import Subscriptions
from tests.support.streams import request_credential


def test_progress_is_found_without_announcements_also_beside_a_request_that_waits_for_the_end(
    dataset: Dataset, accept: Callable[[], Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(shared_polls, "ANNOUNCED_POLL_SECONDS", 1e6)
    job = accept()
    done = [0]

    def find(_: str, __: Sequence[str]) -> Sequence[Job]:
        found = msgspec.structs.replace(job, progress=Progress(stage="merging", done=done[0], total=3))
        return [msgspec.structs.replace(found, state=JobState.SUCCEEDED) if done[0] == 3 else found]

    async def follow() -> list[int]:
        subscriptions = Subscriptions()
        subscriptions.set_hears(True)
        polls = job_polls(subscriptions, Threads(), find)
        place = dataset.tenant_id, dataset.id, request_credential()
        with polls.join(*place) as ends, polls.join(*place) as steps:
            end = asyncio.create_task(ends.wait(AwaitedJob(job.id, None), 20))
            known, seen = job, []
            while not known.state.final:
                found = await steps.wait(AwaitedJob(job.id, known), 20)
                assert found is not None
                known = found
                seen.append(known.progress.done)
                done[0] += 1
            assert await end == known
        return seen

    assert asyncio.run(follow()) == [0, 1, 2, 3]
