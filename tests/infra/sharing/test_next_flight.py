"""Calls that are shared by those who asked before they began."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Sequence
from typing import Any, Never, TypeVar

import pytest

from app.access.errors import NotFound
from app.http.limits.threads import PARTY, Threads
from app.infra.db.acts import begin_act, current_act
from app.infra.errors import Unavailable
from app.infra.sharing.next_flight import NextFlight
from tests.support.streams import when

REQUESTS = 100
_T = TypeVar("_T")


class Table:
    """A table that notes who looks up its rows; a lookup of `held` lasts until `release` is set."""

    def __init__(self) -> None:
        self.lookups: list[tuple[str, str]] = []
        self.parties: set[tuple[str, str]] = set()
        self.acts: list[object] = []
        self.values: dict[tuple[str, str], object] = {}
        self.release = threading.Event()

    def shared(self) -> NextFlight[tuple[str, str], Never, object]:
        threads = Threads()
        return NextFlight(lambda key, _: threads.run_for(key[0], self._read, *key))

    def _read(self, tenant_id: str, reference: str) -> object:
        self.parties.add((tenant_id, PARTY.get()))
        self.acts.append(current_act())
        value = self.values.get((tenant_id, reference))
        self.lookups.append((tenant_id, reference))
        if reference == "held":
            assert self.release.wait(10)
        if value is None:
            raise NotFound(f"there is no {reference}")
        return value


@pytest.fixture
def table() -> Table:
    return Table()


def run(main: Coroutine[Any, Any, _T]) -> _T:
    async def bounded() -> _T:
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(bounded())


def test_requests_during_a_flight_share_the_next_one_which_is_later_than_they_are(table: Table) -> None:
    async def main() -> None:
        shared = table.shared()
        table.values["a", "held"] = "old"
        first = asyncio.create_task(shared.join(("a", "held")))
        await when(lambda: table.lookups)
        table.values["a", "held"] = "new"
        others = [asyncio.create_task(shared.join(("a", "held"))) for _ in range(REQUESTS)]
        await asyncio.sleep(0.05)
        assert len(table.lookups) == 1
        assert shared.busy(("a", "held"))
        table.release.set()
        assert await first == "old"
        assert await asyncio.gather(*others) == ["new"] * REQUESTS
        assert len(table.lookups) == 2
        assert not shared.busy(("a", "held"))
        # One that arrives afterwards has a flight of its own.
        table.values["a", "held"] = "newest"
        assert await shared.join(("a", "held")) == "newest"
        assert len(table.lookups) == 3

    run(main())


def test_flights_of_other_keys_are_not_awaited(table: Table) -> None:
    async def main() -> None:
        shared = table.shared()
        table.values |= {("a", "held"): 1, ("a", "orders"): 2, ("b", "orders"): 3}
        held = asyncio.create_task(shared.join(("a", "held")))
        await when(lambda: table.lookups)
        assert await shared.join(("a", "orders")) == 2
        assert await shared.join(("b", "orders")) == 3
        assert not held.done()
        table.release.set()
        assert await held == 1
        # Each in a thread of its tenant.
        assert table.parties == {("a", "a"), ("b", "b")}

    run(main())


def test_all_requests_get_the_error_and_the_next_flight_is_made_again(table: Table) -> None:
    async def main() -> None:
        shared = table.shared()
        errors = await asyncio.gather(
            *(shared.join(("a", "orders")) for _ in range(REQUESTS)), return_exceptions=True
        )
        assert all(isinstance(error, NotFound) for error in errors)
        assert len(table.lookups) == 1
        table.values["a", "orders"] = 1
        assert await shared.join(("a", "orders")) == 1

    run(main())


def test_request_that_is_cancelled_cancels_no_flight(table: Table) -> None:
    async def main() -> None:
        shared = table.shared()
        table.values["a", "held"] = 1
        first = asyncio.create_task(shared.join(("a", "held")))
        await when(lambda: table.lookups)
        second, third = (asyncio.create_task(shared.join(("a", "held"))) for _ in range(2))
        await asyncio.sleep(0)
        for cancelled in (first, second):
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
        table.release.set()
        assert await third == 1
        assert len(table.lookups) == 2

    run(main())


def test_flight_is_part_of_no_act(table: Table) -> None:
    async def main() -> None:
        shared = table.shared()
        table.values["a", "orders"] = 1
        begin_act(object())  # type: ignore[arg-type]
        assert await shared.join(("a", "orders")) == 1
        assert table.acts == [None]

    run(main())


@pytest.mark.parametrize("seconds", [0.0, 0.003, None])
def test_items_of_those_who_come_together_are_of_one_flight(seconds: float | None) -> None:
    flights: list[tuple[str, Sequence[str]]] = []

    async def fly(key: str, items: Sequence[str]) -> Sequence[str]:
        flights.append((key, items))
        return items

    async def main() -> None:
        shared = NextFlight(fly, gather_seconds=seconds)
        one, other = shared.join("one", ["a", "b"]), shared.join("other", ["c"])
        results = await asyncio.gather(one, other, shared.join("one", ["d", "a"]))
        assert results == [["a", "b", "d"], ["c"], ["a", "b", "d"]]
        assert await shared.join("one", ["e"]) == ["e"]

    run(main())
    assert sorted(flights[:2]) == [("one", ["a", "b", "d"]), ("other", ["c"])]
    assert flights[2:] == [("one", ["e"])]


def test_flight_that_gathers_departs_beside_one_that_is_under_way() -> None:
    async def main() -> None:
        ended, departures = asyncio.Event(), list[Sequence[str]]()

        async def fly(_: str, items: Sequence[str]) -> None:
            departures.append(items)
            await ended.wait()

        shared = NextFlight(fly, gather_seconds=0.0)
        first = asyncio.create_task(shared.join("t", ["a"]))
        await when(lambda: departures)
        second = asyncio.create_task(shared.join("t", ["b"]))
        await when(lambda: len(departures) == 2)
        ended.set()
        await asyncio.gather(first, second)
        assert departures == [["a"], ["b"]]

    run(main())


def test_flight_of_items_that_fails_fails_those_who_share_it_and_no_later_one() -> None:
    failures = [Unavailable("no database")]

    async def fly(_: str, items: Sequence[str]) -> Sequence[str]:
        if failures:
            raise failures.pop()
        return items

    async def main() -> None:
        shared = NextFlight(fly, gather_seconds=0.003)
        both = await asyncio.gather(shared.join("t", ["a"]), shared.join("t", ["b"]), return_exceptions=True)
        assert [type(each) for each in both] == [Unavailable, Unavailable]
        assert await shared.join("t", ["a"]) == ["a"]

    run(main())


def test_request_that_ends_takes_its_items_from_no_other() -> None:
    async def fly(_: str, items: Sequence[str]) -> Sequence[str]:
        return items

    async def main() -> None:
        shared = NextFlight(fly, gather_seconds=0.003)
        ended = asyncio.create_task(shared.join("t", ["a"]))
        other = asyncio.create_task(shared.join("t", ["b"]))
        await asyncio.sleep(0)
        ended.cancel()
        assert await other == ["a", "b"]
        with pytest.raises(asyncio.CancelledError):
            await ended

    run(main())
