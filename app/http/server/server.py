"""The server of an API process: uvicorn, with a drain before its stop and bounds on slow connections."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
import time
from types import FrameType
from typing import Final

import uvicorn

from app.http.server.protocol import BoundedHttp
from app.http.waiting.subscriptions import Subscriptions

# A tick of the server is a tenth of a second.
_TICKS_PER_CHECK: Final = 10
_CLOSE: Final = (b"connection", b"close")


class Server(uvicorn.Server):
    """Ends connections whose clients make no progress, and makes waiting requests return before it waits for them.

    After SIGTERM it serves on for a time: it is not ready, so that load balancers send requests elsewhere, and closes
    each connection after its next response, so that proxies keep none. Then it accepts no more. A second signal, and
    SIGINT, end that time.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        subscriptions: Subscriptions,
        draining: threading.Event,
        drain_seconds: float,
    ) -> None:
        super().__init__(config)
        self._wakeups = subscriptions
        self._draining = draining
        self._drain_seconds = drain_seconds
        self._drained_at = math.inf

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if sig == signal.SIGTERM and self._drain_seconds and not self._draining.is_set():
            self._drained_at = time.monotonic() + self._drain_seconds
            self._draining.set()
        else:
            super().handle_exit(sig, frame)

    async def on_tick(self, counter: int) -> bool:
        if time.monotonic() >= self._drained_at:
            self._drained_at = math.inf
            super().handle_exit(signal.SIGTERM, None)
        if counter % _TICKS_PER_CHECK == 0:
            now = asyncio.get_running_loop().time()
            for connection in tuple(self.server_state.connections):
                if isinstance(connection, BoundedHttp):
                    connection.check(now)
        ends = await super().on_tick(counter)
        headers = self.server_state.default_headers
        # The server makes a new list once per second.
        if self._draining.is_set() and _CLOSE not in headers:
            self.server_state.default_headers = [*headers, _CLOSE]
        return ends

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._wakeups.close()
        await super().shutdown(sockets)
