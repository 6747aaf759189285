"""Queries of a tenant that come together are one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from app.http.limits.threads import Threads
from app.http.waiting.shared_queries import SharedQueries
from app.kernel.format.errors import Unavailable


@pytest.mark.parametrize("seconds", [0.0, 0.003])
def test_keys_of_a_tenant_are_found_by_one_query(seconds: float) -> None:
    requested: list[tuple[str, list[str]]] = []

    def query(tenant_id: str, keys: Sequence[str]) -> list[str]:
        requested.append((tenant_id, sorted(keys)))
        return sorted(keys)

    async def main() -> None:
        queries = SharedQueries(Threads(), query, together_seconds=seconds)
        one, other = queries.find("one", ["a", "b"]), queries.find("other", ["c"])
        found = await asyncio.gather(one, other, queries.find("one", ["d", "a"]))
        assert found == [["a", "b", "d"], ["c"], ["a", "b", "d"]]
        assert await queries.find("one", ["e"]) == ["e"]

    asyncio.run(main())
    assert sorted(requested[:2]) == [("one", ["a", "b", "d"]), ("other", ["c"])]
    assert requested[2:] == [("one", ["e"])]


def test_query_that_fails_fails_those_that_share_it_and_no_later_one() -> None:
    failures = [Unavailable("no database")]

    def query(_: str, keys: Sequence[str]) -> list[str]:
        if failures:
            raise failures.pop()
        return list(keys)

    async def main() -> None:
        queries = SharedQueries(Threads(), query, together_seconds=0.003)
        both = await asyncio.gather(
            queries.find("t", ["a"]), queries.find("t", ["b"]), return_exceptions=True
        )
        assert [type(each) for each in both] == [Unavailable, Unavailable]
        assert await queries.find("t", ["a"]) == ["a"]

    asyncio.run(main())


def test_request_that_ends_takes_the_query_from_no_other() -> None:
    async def main() -> None:
        queries = SharedQueries(Threads(), lambda _, keys: sorted(keys), together_seconds=0.003)
        ended = asyncio.create_task(queries.find("t", ["a"]))
        other = asyncio.create_task(queries.find("t", ["b"]))
        await asyncio.sleep(0)
        ended.cancel()
        assert await other == ["a", "b"]
        with pytest.raises(asyncio.CancelledError):
            await ended

    asyncio.run(main())
