"""Calls that are shared while they are under way: on an event loop, and by threads."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest

from app.infra.sharing.single_flight import SingleFlight, in_daemon_thread, landed
from tests.support.streams import when
from tests.support.waiting import until

REQUESTS = 100


class Gate:
    """Counts the calls of each key, which end once they are let through: with their number, or with an error."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.opened = threading.Event()
        self.error: Exception | None = None

    def __call__(self, key: str) -> int:
        self.calls[key] += 1
        number = self.calls[key]
        assert self.opened.wait(10)
        if self.error is not None:
            raise self.error
        return number


def test_threads_that_ask_during_a_call_get_its_result_and_those_after_it_another_one() -> None:
    flights, gate = SingleFlight[str, Future[int]](), Gate()

    def request(key: str) -> int:
        return flights.join(key, partial(in_daemon_thread, partial(gate, key), "flight")).result(10)

    with ThreadPoolExecutor(REQUESTS) as threads:
        requests = [threads.submit(request, key) for key in "ab" for _ in range(REQUESTS // 2)]
        until(lambda: len(gate.calls) == 2, "a flight for each key")
        assert flights.under_way("a") is not None
        gate.opened.set()
        assert {each.result(10) for each in requests} == {1}
    until(lambda: flights.under_way("a") is None, "the end of the flight")
    assert request("a") == 2


def test_threads_get_the_error_of_the_call_and_the_next_call_is_made_again() -> None:
    flights, gate = SingleFlight[str, Future[int]](), Gate()
    start = partial(in_daemon_thread, partial(gate, "a"), "flight")
    gate.error = ArithmeticError("a")
    shared = [flights.join("a", start) for _ in range(3)]
    gate.opened.set()
    for each in shared:
        with pytest.raises(ArithmeticError, match="a"):
            each.result(10)
    gate.error = None
    assert flights.join("a", start).result(10) == 2


def test_flight_that_cannot_start_leaves_nothing_behind() -> None:
    flights = SingleFlight[str, Future[int]]()

    def no_thread() -> Future[int]:
        raise RuntimeError("can't start new thread")

    with pytest.raises(RuntimeError):
        flights.join("a", no_thread)
    assert flights.under_way("a") is None
    assert flights.join("a", partial(in_daemon_thread, lambda: 1, "flight")).result(10) == 1


def test_flight_that_ends_at_once_is_not_joined_any_more() -> None:
    flights = SingleFlight[str, Future[int]]()

    def ended(result: int) -> Future[int]:
        future: Future[int] = Future()
        future.set_result(result)
        return future

    assert [flights.join("a", partial(ended, number)).result(0) for number in range(3)] == [0, 1, 2]


@pytest.mark.anyio
async def test_request_that_is_cancelled_cancels_the_call_for_no_other() -> None:
    flights, ended = SingleFlight[str, asyncio.Task[str]](), asyncio.Event()

    async def call() -> str:
        await ended.wait()
        return "result"

    async def request() -> str:
        return await landed(flights.join("a", lambda: asyncio.create_task(call())))

    requests = [asyncio.create_task(request()) for _ in range(3)]
    await asyncio.sleep(0)
    for cancelled in requests[:2]:
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    ended.set()
    assert await requests[2] == "result"


@pytest.mark.anyio
async def test_error_is_not_logged_if_all_who_shared_it_were_cancelled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flights, ended = SingleFlight[str, asyncio.Task[str]](), asyncio.Event()

    async def call() -> str:
        await ended.wait()
        raise ArithmeticError("a")

    request = asyncio.create_task(landed(flights.join("a", lambda: asyncio.create_task(call()))))
    await asyncio.sleep(0)
    request.cancel()
    ended.set()
    with caplog.at_level(logging.ERROR, "asyncio"):
        await when(lambda: flights.under_way("a") is None)
        await asyncio.sleep(0)
    assert not caplog.records


def test_call_in_a_daemon_thread_is_no_reason_to_wait() -> None:
    gate = Gate()
    shared = in_daemon_thread(partial(gate, "a"), "hangs")
    thread = next(each for each in threading.enumerate() if each.name == "hangs")
    assert thread.daemon
    with pytest.raises(TimeoutError):
        shared.result(0.01)
    gate.opened.set()
    assert shared.result(10) == 1
