"""Threads of requests: what one tenant has running or waiting delays another by one call at most."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest

from app.http.limits.threads import PARTY, Threads


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
async def test_cancelled_request_waits_for_its_call() -> None:
    threads, gate, ended = Threads(1), threading.Event(), list[str]()

    def call() -> None:
        gate.wait()
        ended.append("ended")
        raise ValueError("after the request was cancelled")

    request = run(threads, "a", call)
    await settled()
    for _ in range(2):
        request.cancel()
        await settled()
        assert not request.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await request
    assert ended == ["ended"]
    assert await run(threads, "a", lambda: "ran") == "ran"


@pytest.mark.anyio
async def test_call_has_the_context_of_its_request() -> None:
    assert await run(Threads(1), "acme", PARTY.get) == "acme"
