"""For how long a value is kept, and when what it holds is let go of."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from app.infra.sharing.recent_values import RecentValues


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_value_is_kept_for_its_time_and_let_go_of_then() -> None:
    async def used() -> None:
        clock = Clock()
        values = RecentValues[str, int](10.0, 1024 * 1024, clock=clock)
        values.put("a", 1, 0)
        clock.now = 5.0
        values.put("b", 2, 0)
        assert (values.get("a"), values.get("b"), values.get("c")) == (1, 2, None)
        clock.now = 10.0
        assert (values.get("a"), values.get("b"), len(values)) == (None, 2, 2)
        values.sweep()
        assert len(values) == 1
        clock.now = 15.0
        values.sweep()
        assert len(values) == 0

    asyncio.run(used())


def test_value_that_is_put_again_has_its_time_again() -> None:
    async def used() -> None:
        clock = Clock()
        values = RecentValues[str, int](10.0, 1024 * 1024, clock=clock)
        values.put("a", 1, 0)
        clock.now = 9.0
        values.put("a", 2, 0)
        clock.now = 12.0
        values.sweep()
        assert values.get("a") == 2
        values.drop("a")
        assert values.get("a") is None
        clock.now = 19.0
        values.sweep()
        assert len(values) == 0

    asyncio.run(used())


def test_event_loop_sweeps_by_itself() -> None:
    async def used() -> None:
        values = RecentValues[str, int](0.001, 1024 * 1024)
        values.put("a", 1, 0)
        for _ in range(20_000):
            if not len(values):
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the value was not let go of")

    asyncio.run(used())


def test_values_stay_within_their_bytes() -> None:
    async def used() -> None:
        values = RecentValues[int, int](10.0, 10_000)
        for number in range(20):
            values.put(number, number, 1_000)
        assert len(values) < 10
        assert values.get(19) == 19

    asyncio.run(used())
