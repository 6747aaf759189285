"""Slots that parties share: how many at a time, who is next, and that none is lost."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections import Counter
from collections.abc import AsyncGenerator
from functools import partial
from queue import SimpleQueue

import pytest

from app.infra.sharing.fair_slots import FairSlots, HeldSlot, SlotTurn

SLOTS = 16
PARTY_MAX = 4


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("party_max", [None, 2])
async def test_no_slot_is_lost_or_doubled_whatever_is_cancelled_or_waits_too_long(
    seed: int, party_max: int | None
) -> None:
    chance, slots, held = random.Random(seed), FairSlots(3, party_max=party_max), Counter[str]()
    most = most_of_one = 0

    async def hold(party: str) -> None:
        nonlocal most, most_of_one
        async with slots.slot(party, chance.choice([None, 0, 0.001, 10])) as given:
            if not given:
                return
            held[party] += 1
            most, most_of_one = max(most, held.total()), max(most_of_one, held[party])
            try:
                await asyncio.sleep(0)
            finally:
                held[party] -= 1

    tasks = []
    for _ in range(200):
        tasks.append(asyncio.create_task(hold(chance.choice("abcd"))))
        if chance.random() < 0.3:
            chance.choice(tasks).cancel()
        if chance.random() < 0.5:
            await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert (held.total(), most) == (0, 3)
    assert most_of_one <= (party_max or 3)
    # All of them are free again.
    for party in "xyz":
        assert await slots.acquire(party, 0)


@pytest.mark.anyio
async def test_parties_that_wait_take_turns() -> None:
    slots, order = FairSlots(1), list[str]()

    async def hold(party: str) -> None:
        await slots.acquire(party)
        order.append(party)
        slots.release(party)

    await slots.acquire("first")
    tasks = [asyncio.create_task(hold(party)) for party in "aaaabbbcc"]
    await asyncio.sleep(0)
    slots.release("first")
    await asyncio.gather(*tasks)
    assert "".join(order) == "abcabcaba"


@pytest.mark.anyio
async def test_party_waits_at_its_bound_in_a_bounded_queue_beside_free_slots() -> None:
    slots = FairSlots(SLOTS, party_max=PARTY_MAX, waiting_max=30)
    order, refused = list[str](), Counter[str]()

    async def call(party: str) -> None:
        async with slots.slot(party, 10) as given:
            if given:
                order.append(party)
                await asyncio.sleep(0.001)
            else:
                refused[party] += 1

    async with asyncio.TaskGroup() as group:
        for party in "abcdef":
            for _ in range(50):
                group.create_task(call(party))
        await asyncio.sleep(0)
        group.create_task(call("quiet"))
    assert order.index("quiet") <= 2 * SLOTS
    assert refused == {party: 50 - 30 - (PARTY_MAX if party in "abcd" else 0) for party in "abcdef"}


@pytest.mark.anyio
async def test_who_waits_too_long_or_is_cancelled_leaves_its_place() -> None:
    slots = FairSlots(SLOTS, party_max=PARTY_MAX)
    for _ in range(PARTY_MAX):
        assert await slots.acquire("t", 0)
    assert not await slots.acquire("t", 0.01)
    cancelled, following = (asyncio.create_task(slots.acquire("t", 10)) for _ in range(2))
    await asyncio.sleep(0)
    # It gets its slot, and ends before it could use it.
    slots.release("t")
    cancelled.cancel()
    assert await following


@pytest.mark.anyio
async def test_slot_of_a_stream_is_given_back_however_it_ends() -> None:
    slots = FairSlots(1)

    async def parts() -> AsyncGenerator[bytes]:
        yield b"1"
        yield b"2"

    async def stream() -> AsyncGenerator[bytes]:
        assert await slots.acquire("a", 1)
        return HeldSlot(slots, "a").during(parts())

    assert [each async for each in await stream()] == [b"1", b"2"]
    abandoned = await stream()
    assert await anext(abandoned) == b"1"
    await abandoned.aclose()
    never_started = await stream()
    assert not await slots.acquire("b", 0)
    del never_started
    gc.collect()
    await asyncio.sleep(0)
    assert await slots.acquire("b", 1)


def test_kinds_of_a_party_take_turns_and_share_its_bound() -> None:
    slots, begun = FairSlots(3, party_max=2), list[str]()

    def enter(party: str, kind: str, name: str) -> SlotTurn | None:
        return slots.enter(party, lambda: begun.append(name), kind=kind)

    for name in ("w1", "w2", "w3", "w4"):
        enter("a", "writes", name)
    enter("a", "tasks", "t1")
    assert begun == ["w1", "w2"]
    enter("b", "writes", "b1")
    assert begun == ["w1", "w2", "b1"]
    slots.release("b", kind="writes")
    assert begun == ["w1", "w2", "b1"], "one slot is never that of the first party"
    slots.release("a", kind="writes")
    assert begun[3:] == ["t1"]
    slots.release("a", kind="tasks")
    assert begun[4:] == ["w3"]


def test_turn_that_is_given_up_never_begins() -> None:
    slots, begun = FairSlots(1), list[str]()
    running = slots.enter("a", lambda: begun.append("running"))
    waiting = slots.enter("a", lambda: begun.append("waiting"))
    slots.enter("a", lambda: begun.append("following"))
    assert running is not None
    assert waiting is not None
    assert (slots.demand("a"), slots.total_demand()) == (3, 3)
    assert not slots.leave(running)
    assert slots.leave(waiting)
    assert not slots.leave(waiting)
    slots.release("a")
    assert begun == ["running", "following"]
    slots.release("a")
    assert (slots.demand("a"), slots.total_demand()) == (0, 0)


def test_large_work_starts_once_the_party_holds_less_than_it_may() -> None:
    slots, begun = FairSlots(100, party_max=10), list[int]()
    slots.take("a", units=25)
    for units in (8, 8, 1):
        slots.enter("a", lambda units=units: begun.append(units), units=units)  # type: ignore[misc]
    assert not slots.take_if_free("a")
    assert slots.take_if_free("b", units=30)
    slots.release("a", units=14)
    assert begun == []
    slots.release("a", units=10)
    assert (begun, slots.held("a")) == ([8, 8], 17)
    slots.release("a", units=17)
    assert (begun, slots.held("a")) == ([8, 8, 1], 1)


@pytest.mark.parametrize("seed", range(3))
def test_no_slot_is_lost_or_doubled_by_threads(seed: int) -> None:
    chance, slots, lock = random.Random(seed), FairSlots(3, party_max=2), threading.Lock()
    held, most, ended = Counter[str](), [0, 0], threading.Semaphore(0)
    work: SimpleQueue[str | None] = SimpleQueue()

    def run() -> None:
        while (party := work.get()) is not None:
            with lock:
                held[party] += 1
                most[:] = max(most[0], held.total()), max(most[1], held[party])
            with lock:
                held[party] -= 1
            slots.release(party)
            ended.release()

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    turns = 2_000
    for _ in range(turns):
        party = chance.choice("abcd")
        assert slots.enter(party, partial(work.put, party))
    for _ in range(turns):
        assert ended.acquire(timeout=10)
    for _ in threads:
        work.put(None)
    for thread in threads:
        thread.join(10)
    assert slots.total_demand() == 0
    assert most[0] <= 3
    assert most[1] <= 2
