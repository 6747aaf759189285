"""The API serves on for a time after SIGTERM, and makes load balancers and proxies use other processes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest
import uvicorn

from app.http.server.server import Server
from app.http.waiting.subscriptions import Subscriptions
from app.infra.runtime.loopback import free_port
from tests.support.waiting import until


async def answer(scope: Any, receive: Any, send: Any) -> None:
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@contextmanager
def serving(drain_seconds: float) -> Iterator[tuple[Server, threading.Event, httpx2.Client]]:
    port, draining = free_port(), threading.Event()
    config = uvicorn.Config(answer, host="127.0.0.1", port=port, lifespan="off", log_config=None)
    server = Server(config, Subscriptions(), draining, drain_seconds)
    thread = threading.Thread(target=server.run)
    thread.start()
    until(lambda: server.started, "the server")
    try:
        with httpx2.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            yield server, draining, client
    finally:
        server.should_exit = True
        thread.join(20)


def test_server_serves_after_sigterm_and_keeps_no_connection() -> None:
    with serving(1.5) as (server, draining, client):
        assert "connection" not in client.get("/").headers
        server.handle_exit(signal.SIGTERM, None)
        assert draining.is_set()
        until(lambda: client.get("/").headers.get("connection") == "close", "a response that closes")
        assert not server.should_exit
        until(lambda: server.should_exit, "the end of the drain", seconds_max=5)


@pytest.mark.parametrize(
    ("drain_seconds", "signals"),
    [(0.0, [signal.SIGTERM]), (60.0, [signal.SIGTERM] * 2), (60.0, [signal.SIGINT])],
)
def test_server_stops_at_once_without_a_drain_or_at_a_second_signal(
    drain_seconds: float, signals: list[int]
) -> None:
    with serving(drain_seconds) as (server, _, _client):
        before = time.monotonic()
        for number in signals:
            server.handle_exit(number, None)
        assert server.should_exit
        assert time.monotonic() - before < drain_seconds or not drain_seconds
