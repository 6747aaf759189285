"""Requests within the process: bounds of bytes and time, and that none outlives its reader."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from app.access.tenants.values import ActorKind, ActorSecret
from app.features.console.inner_requests import (
    InnerRequests,
    InnerResponse,
    InnerStream,
    ResponseTooLarge,
    ResponseTooSlow,
)
from app.features.console.visit import PageApi, PagePart
from app.http.limits.threads import Threads
from app.http.protocols import SERVICE

Send = Callable[[Any], Awaitable[None]]
Receive = Callable[[], Awaitable[Any]]
_SOON = 0.05


class Sender:
    """Responds at once, and counts the requests."""

    count = 0

    async def send(self, *_: Any, **__: Any) -> InnerResponse:
        self.count += 1
        return InnerResponse(200, {}, b"{}")


def test_a_page_sends_a_bounded_number_of_requests() -> None:
    sender = Sender()
    api = PageApi(sender, Threads())

    async def requests() -> list[PagePart]:
        return [await api.part("/jobs") for _ in range(70)]

    parts = run(requests())
    assert sender.count == len(api.calls) == 60
    assert [part.problem is None for part in parts] == [True] * 60 + [False] * 10
    assert parts[-1].problem.members["detail"] == "a page or a form sends at most 60 requests to the API"


class Handler:
    """An application that sends the parts, and waits for ever where one is None."""

    def __init__(self, *parts: bytes | None, announced: int | None = None, begins: bool = True) -> None:
        self.parts = parts
        self.headers = [] if announced is None else [(b"Content-Length", str(announced).encode())]
        self.begins = begins
        self.sent = 0
        self.is_open = False

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.is_open = True
        try:
            if not self.begins:
                await asyncio.Event().wait()
            await send({"type": "http.response.start", "status": 200, "headers": self.headers})
            for part in self.parts:
                if part is None:
                    await asyncio.Event().wait()
                await send({"type": "http.response.body", "body": part, "more_body": True})
                self.sent += 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            assert (await receive())["type"] == "http.request"
            assert (await receive())["type"] == "http.disconnect"
        finally:
            self.is_open = False


def inner(handler: Any) -> InnerRequests:
    async def connected() -> Any:
        await asyncio.Event().wait()

    scope = {"headers": [(b"host", b"lake"), (b"cookie", b"secret")], "state": {SERVICE: handler}}
    return InnerRequests(scope, connected, ActorSecret(ActorKind.SESSION, "hws_"))


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def bounded() -> Any:
        async with asyncio.timeout(10):
            return await coroutine

    return asyncio.run(bounded())


async def read(stream: InnerStream, *, pause_seconds: float = 0.0) -> list[bytes]:
    parts = []
    async for part in stream.body:
        parts.append(part)
        await asyncio.sleep(pause_seconds)
    return parts


@pytest.mark.parametrize("bytes_max", [7, 6])
def test_a_stream_has_a_bound_of_bytes(bytes_max: int) -> None:
    handler = Handler(b"one", b"two", b"!")

    async def body() -> list[bytes]:
        return await read(await inner(handler).stream("GET", "/x", bytes_max=bytes_max))

    if bytes_max == 7:
        assert run(body()) == [b"one", b"two", b"!"]
    else:
        with pytest.raises(ResponseTooLarge, match="GET /x"):
            run(body())
    assert not handler.is_open


@pytest.mark.parametrize("announced", [3, 4])
def test_a_stream_that_is_announced_as_too_large_does_not_begin(announced: int) -> None:
    handler = Handler(b"one", announced=announced)
    if announced == 3:
        assert run(inner(handler).stream("GET", "/x", bytes_max=3)).status == 200
        return
    with pytest.raises(ResponseTooLarge):
        run(inner(handler).stream("GET", "/x", bytes_max=3))
    assert not handler.is_open


@pytest.mark.parametrize(
    "handler",
    [Handler(b"one", None), Handler(None), Handler(begins=False)],
    ids=["after a part", "before a part", "before its start"],
)
def test_a_stream_that_stalls_ends(handler: Handler) -> None:
    async def body() -> list[bytes]:
        return await read(await inner(handler).stream("GET", "/x", bytes_max=9, part_seconds_max=_SOON))

    with pytest.raises(ResponseTooSlow):
        run(body())
    assert not handler.is_open


def test_a_slow_reader_gets_all_parts_one_after_another() -> None:
    handler = Handler(*[b"."] * 6)

    async def body() -> list[bytes]:
        stream = await inner(handler).stream("GET", "/x", bytes_max=9, part_seconds_max=_SOON)
        await asyncio.sleep(2 * _SOON)
        # Few wait for the reader; the handler waits with the rest.
        assert handler.sent < 4
        return await read(stream, pause_seconds=_SOON)

    assert run(body()) == [b"."] * 6


def test_a_reader_that_stops_ends_the_request() -> None:
    handler = Handler(b"one", None)

    async def body() -> None:
        stream = await inner(handler).stream("GET", "/x", bytes_max=9)
        assert await anext(stream.body) == b"one"
        assert handler.is_open
        await stream.body.aclose()
        assert not handler.is_open

    run(body())


@pytest.mark.parametrize("method", ["send", "stream"])
def test_a_reader_that_is_cancelled_ends_a_request_that_has_not_begun(method: str) -> None:
    handler = Handler(begins=False)

    async def body() -> None:
        requests = inner(handler)
        reading = (
            requests.send("GET", "/x") if method == "send" else requests.stream("GET", "/x", bytes_max=9)
        )
        task = asyncio.create_task(reading)
        await asyncio.sleep(_SOON)
        assert handler.is_open
        task.cancel()
        await asyncio.wait([task])
        assert not handler.is_open

    run(body())


def test_a_whole_response_has_bounds_of_bytes_and_of_time() -> None:
    assert run(inner(Handler(b"one", b"two")).send("GET", "/x", bytes_max=6)).body == b"onetwo"
    large, slow = Handler(b"one", b"two", None), Handler(*[b"."] * 3, None)
    with pytest.raises(ResponseTooLarge):
        run(inner(large).send("GET", "/x", bytes_max=5))
    with pytest.raises(ResponseTooSlow):
        run(inner(slow).send("GET", "/x", seconds_max=_SOON))
    assert (large.is_open, slow.is_open) == (False, False)


def test_parts_that_come_in_time_do_not_extend_the_time_of_the_whole() -> None:
    async def drip(_: Any, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b".", "more_body": True})
            await asyncio.sleep(_SOON / 5)

    with pytest.raises(ResponseTooSlow):
        run(inner(drip).send("GET", "/x", seconds_max=_SOON * 2))


def test_a_failure_of_the_service_is_that_of_the_request() -> None:
    async def fail(_: Any, __: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        raise ValueError("no")

    async def fail_at_once(_: Any, __: Receive, ___: Send) -> None:
        raise ValueError("no")

    for handler in (fail, fail_at_once):
        with pytest.raises(ValueError, match="no"):
            run(inner(handler).send("GET", "/x"))
