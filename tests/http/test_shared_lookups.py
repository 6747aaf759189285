"""Lookups that concurrent requests share."""

import asyncio
import threading

import pytest

from app.http.limits.threads import PARTY, Threads
from app.http.waiting.shared_lookups import SharedLookups
from app.infra.db.acts import begin_act, current_act
from app.kernel.format.errors import NotFound
from tests.support.streams import when

REQUESTS = 100


class Table:
    """A table whose rows count how often they were looked up; a lookup of `held` lasts until `release` is set."""

    def __init__(self):
        self.lookups = []
        self.parties = set()
        self.acts = []
        self.values = {}
        self.release = threading.Event()

    def read(self, tenant_id, reference):
        self.parties.add((tenant_id, PARTY.get()))
        self.acts.append(current_act())
        found = self.values.get((tenant_id, reference))
        self.lookups.append((tenant_id, reference))
        if reference == "held":
            assert self.release.wait(10)
        if found is None:
            raise NotFound(f"there is no {reference}")
        return found


@pytest.fixture
def table():
    return Table()


def run(main):
    async def bounded():
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(bounded())


def test_requests_during_a_lookup_share_the_next_one_which_is_later_than_they_are(table):
    async def main():
        shared = SharedLookups(table.read, Threads())
        table.values["a", "held"] = "old"
        first = asyncio.create_task(shared.get("a", "held"))
        await when(lambda: table.lookups)
        table.values["a", "held"] = "new"
        others = [asyncio.create_task(shared.get("a", "held")) for _ in range(REQUESTS)]
        await asyncio.sleep(0.05)
        assert len(table.lookups) == 1
        table.release.set()
        assert await first == "old"
        assert await asyncio.gather(*others) == ["new"] * REQUESTS
        assert len(table.lookups) == 2
        # One that arrives afterwards has a lookup of its own.
        table.values["a", "held"] = "newest"
        assert await shared.get("a", "held") == "newest"
        assert len(table.lookups) == 3

    run(main())


def test_lookups_of_other_references_and_tenants_are_not_awaited(table):
    async def main():
        shared = SharedLookups(table.read, Threads())
        table.values |= {("a", "held"): 1, ("a", "orders"): 2, ("b", "orders"): 3}
        held = asyncio.create_task(shared.get("a", "held"))
        await when(lambda: table.lookups)
        assert await shared.get("a", "orders") == 2
        assert await shared.get("b", "orders") == 3
        assert not held.done()
        table.release.set()
        assert await held == 1
        # Each in a thread of its tenant.
        assert table.parties == {("a", "a"), ("b", "b")}

    run(main())


def test_all_requests_get_the_error_and_the_next_lookup_is_made_again(table):
    async def main():
        shared = SharedLookups(table.read, Threads())
        errors = await asyncio.gather(
            *(shared.get("a", "orders") for _ in range(REQUESTS)), return_exceptions=True
        )
        assert all(isinstance(error, NotFound) for error in errors)
        assert len(table.lookups) == 1
        table.values["a", "orders"] = 1
        assert await shared.get("a", "orders") == 1

    run(main())


def test_cancelled_request_cancels_no_lookup(table):
    async def main():
        shared = SharedLookups(table.read, Threads())
        table.values["a", "held"] = 1
        first = asyncio.create_task(shared.get("a", "held"))
        await when(lambda: table.lookups)
        second, third = (asyncio.create_task(shared.get("a", "held")) for _ in range(2))
        await asyncio.sleep(0)
        for cancelled in (first, second):
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        table.release.set()
        assert await third == 1
        assert len(table.lookups) == 2

    run(main())


def test_lookup_is_part_of_no_act(table):
    async def main():
        shared = SharedLookups(table.read, Threads())
        table.values["a", "orders"] = 1
        begin_act(object())
        assert await shared.get("a", "orders") == 1
        assert table.acts == [None]

    run(main())
