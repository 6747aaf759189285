"""A proxy before Postgres that breaks connections at the moment a test chooses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import Self

from sqlalchemy import make_url

_COMMIT = b"COMMIT\x00"


class Fault(Enum):
    """What happens to the next COMMIT: its request is lost, or its answer."""

    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"


class BreakingProxy:
    """Forwards to the server of a URL. `break_next` arms one fault; `url` leads through the proxy."""

    def __init__(self, url: str) -> None:
        target = make_url(url)
        self._target = (target.host or "127.0.0.1", target.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._armed: Fault | None = None
        self._sockets: set[socket.socket] = set()
        self._pairs: dict[int, tuple[socket.socket, socket.socket]] = {}
        self._threads: list[threading.Thread] = []
        self.broken = 0
        self.url = target.set(host="127.0.0.1", port=self._listener.getsockname()[1]).render_as_string(
            hide_password=False
        )

    @classmethod
    @contextmanager
    def before(cls, url: str) -> Iterator[Self]:
        """A proxy that serves until the end of the block."""
        proxy = cls(url)
        proxy._start(proxy._accept)
        try:
            yield proxy
        finally:
            proxy.close()

    def break_next(self, fault: Fault) -> None:
        """Breaks the connection that sends the next COMMIT."""
        self._armed = fault

    def carries(self, client_port: int) -> bool:
        """Whether the connection that the server sees coming from this port goes through here."""
        return client_port in self._pairs

    def cut(self, client_port: int) -> None:
        """Cuts one connection, named by the port that the server sees it coming from."""
        _cut(*self._pairs[client_port])

    def close(self) -> None:
        """Cuts every connection and takes no more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        _cut(*self._sockets)
        for thread in self._threads:
            thread.join(5)

    def _start(self, target: object, *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                # The server is away: its clients are to find that out as if they had asked it themselves.
                _cut(client)
                continue
            self._sockets |= {client, server}
            self._pairs[server.getsockname()[1]] = client, server
            answer_lost = threading.Event()
            self._start(self._forward_requests, client, server, answer_lost)
            self._start(self._forward_answers, client, server, answer_lost)

    def _forward_requests(
        self, client: socket.socket, server: socket.socket, answer_lost: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := client.recv(65_536):
                if self._armed is not None and _COMMIT in data:
                    fault, self._armed = self._armed, None
                    self.broken += 1
                    if fault is Fault.REQUEST_LOST:
                        break
                    answer_lost.set()
                server.sendall(data)
        _cut(client, server)

    def _forward_answers(
        self, client: socket.socket, server: socket.socket, answer_lost: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65_536):
                if answer_lost.is_set():
                    # The server has answered, so the transaction is durable; nobody will be told.
                    break
                client.sendall(data)
        _cut(client, server)


def _cut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
