"""Polls of jobs: those of a tenant that come together are one query."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from app.format.errors import Unavailable
from app.http.limits.threads import Threads
from app.jobs.handlers.job_polls import SharedFinds
from app.jobs.values import Job


def test_jobs_of_several_datasets_are_found_by_one_query_of_their_tenant() -> None:
    requested: list[tuple[str, list[str]]] = []

    def find(tenant_id: str, job_ids: Sequence[str]) -> Sequence[Job]:
        requested.append((tenant_id, sorted(job_ids)))
        return []

    async def main() -> None:
        finds = SharedFinds(Threads(), find)
        one, other = finds.find("one", ["a", "b"]), finds.find("other", ["c"])
        await asyncio.gather(one, other, finds.find("one", ["d"]))
        await finds.find("one", ["e"])

    asyncio.run(main())
    assert sorted(requested[:2]) == [("one", ["a", "b", "d"]), ("other", ["c"])]
    assert requested[2:] == [("one", ["e"])]


def test_query_that_fails_fails_those_that_share_it_and_no_later_one() -> None:
    failures = [Unavailable("no database")]

    def find(_: str, __: Sequence[str]) -> Sequence[Job]:
        if failures:
            raise failures.pop()
        return []

    async def main() -> None:
        finds = SharedFinds(Threads(), find)
        both = await asyncio.gather(finds.find("t", ["a"]), finds.find("t", ["b"]), return_exceptions=True)
        assert [type(each) for each in both] == [Unavailable, Unavailable]
        assert await finds.find("t", ["a"]) == {}

    asyncio.run(main())


def test_request_that_ends_takes_the_query_from_no_other() -> None:
    async def main() -> None:
        finds = SharedFinds(Threads(), lambda _, __: [])
        ended = asyncio.create_task(finds.find("t", ["a"]))
        other = asyncio.create_task(finds.find("t", ["b"]))
        await asyncio.sleep(0)
        ended.cancel()
        assert await other == {}
        with pytest.raises(asyncio.CancelledError):
            await ended

    asyncio.run(main())
