"""Turns of tenants: how many at a time, and who is next."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from app.messaging import turns as turns_module
from app.messaging.turns import TENANT_TURNS_MAX, TURNS_MAX, Turns


def test_tenants_that_wait_have_turns_alternately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_TENANT_WAITING_MAX", 30)
    order: list[str] = []
    refused: Counter[str] = Counter()
    held: Counter[str] = Counter()

    async def call(turns: Turns, tenant: str, seconds: float = 10) -> None:
        async with turns.turn(tenant, seconds) as given:
            if not given:
                refused[tenant] += 1
                return
            order.append(tenant)
            held[tenant] += 1
            assert held[tenant] <= TENANT_TURNS_MAX
            assert held.total() <= TURNS_MAX
            await asyncio.sleep(0.001)
            held[tenant] -= 1

    async def act() -> None:
        turns = Turns()
        async with asyncio.TaskGroup() as group:
            for tenant in "abcdef":
                for _ in range(50):
                    group.create_task(call(turns, tenant))
            await asyncio.sleep(0)
            group.create_task(call(turns, "quiet"))
            for waiting in [group.create_task(call(turns, "a")) for _ in range(5)]:
                waiting.cancel()
        assert order.index("quiet") <= 2 * TURNS_MAX
        # Nothing is held or waits any longer.
        order.clear()
        async with asyncio.TaskGroup() as group:
            for tenant in "ghij":
                for _ in range(TENANT_TURNS_MAX):
                    group.create_task(call(turns, tenant, 0))
        assert len(order) == TURNS_MAX

    asyncio.run(act())
    assert refused["b"] == 50 - TENANT_TURNS_MAX - 30
    assert refused["quiet"] == 0


def test_who_waits_too_long_or_is_cancelled_leaves_its_place() -> None:
    async def act() -> None:
        turns = Turns()

        async def wait(seconds: float) -> bool:
            async with turns.turn("t", seconds) as given:
                return given

        async with asyncio.TaskGroup() as group, asyncio.timeout(10):
            holding = [turns.turn("t", 0) for _ in range(TENANT_TURNS_MAX)]
            for each in holding:
                assert await each.__aenter__()
            assert not await wait(0.01)
            cancelled, next_one = group.create_task(wait(10)), group.create_task(wait(10))
            await asyncio.sleep(0)
            # It has its turn, and ends before it could use it.
            await holding.pop().__aexit__(None, None, None)
            cancelled.cancel()
            assert await next_one
            for each in holding:
                await each.__aexit__(None, None, None)
            assert await wait(0)

    asyncio.run(act())
