"""Threads of requests: what one tenant has running or waiting delays another by one call at most."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter

import pytest

from app.http.limits.threads import PARTY, FairSlots, Threads


def run(threads: Threads, party: str, call: object) -> asyncio.Task[object]:
    """The call, as a task of a request of this party."""

    async def request() -> object:
        PARTY.set(party)
        return await threads.run(call)  # type: ignore[arg-type]

    return asyncio.create_task(request())


async def settled() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.mark.anyio
async def test_next_free_thread_goes_to_the_party_that_holds_the_fewest() -> None:
    threads, gate, order = Threads(2), threading.Semaphore(0), list[str]()

    def call(name: str) -> None:
        gate.acquire()
        order.append(name)

    flood = [run(threads, "noisy", lambda: call("noisy")) for _ in range(20)]
    await settled()
    quiet = run(threads, "quiet", lambda: call("quiet"))
    await settled()
    gate.release(22)
    await asyncio.gather(quiet, *flood)
    # Two calls of the flood ran already, and the first of them to end made way.
    assert "quiet" in order[:4]
    assert Counter(order) == {"noisy": 20, "quiet": 1}


@pytest.mark.anyio
async def test_error_and_cancellation_give_the_thread_back() -> None:
    threads, gate = Threads(1), threading.Event()
    holding = run(threads, "a", gate.wait)
    await settled()
    waiting = run(threads, "b", lambda: None)
    await settled()
    waiting.cancel()
    failing = run(threads, "c", lambda: 1 / 0)
    gate.set()
    with pytest.raises(ZeroDivisionError):
        await failing
    assert await holding
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await run(threads, "b", lambda: "ran") == "ran"


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(20))
async def test_no_slot_is_lost_or_doubled_whatever_is_cancelled(seed: int) -> None:
    chance, slots, held, most = random.Random(seed), FairSlots(3), 0, 0

    async def hold(party: str) -> None:
        nonlocal held, most
        await slots.acquire(party)
        try:
            held += 1
            most = max(most, held)
            await asyncio.sleep(0)
        finally:
            held -= 1
            slots.release(party)

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(hold(chance.choice("abcd"))))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (held, most) == (0, 3)
    # All of them are free again.
    async with asyncio.timeout(1):
        for _ in range(3):
            await slots.acquire("z")


@pytest.mark.anyio
async def test_parties_that_wait_take_turns() -> None:
    slots, order = FairSlots(1), list[str]()

    async def hold(party: str) -> None:
        await slots.acquire(party)
        order.append(party)
        slots.release(party)

    await slots.acquire("first")
    tasks = [asyncio.create_task(hold(party)) for party in "aaaabbbcc"]
    await settled()
    slots.release("first")
    await asyncio.gather(*tasks)
    assert "".join(order) == "abcabcaba"
