"""A proxy before Postgres that breaks connections at the moment a test chooses."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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

    def __init__(self, url: str, port: int = 0) -> None:
        target = make_url(url)
        self._target = (target.host or "127.0.0.1", target.port or 5432)
        self._listener = socket.create_server(("127.0.0.1", port))
        self._armed: Fault | None = None
        self._connections: set[_Connection] = set()
        self._threads: list[threading.Thread] = []
        self.broken = 0
        self.url = target.set(host="127.0.0.1", port=self._listener.getsockname()[1]).render_as_string(
            hide_password=False
        )

    @classmethod
    @contextmanager
    def before(cls, url: str, *, port: int = 0) -> Iterator[Self]:
        """A proxy that serves until the end of the block, on a free port unless one is named."""
        proxy = cls(url, port)
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
        return any(connection.port == client_port for connection in tuple(self._connections))

    def cut(self, client_port: int) -> None:
        """Cuts one connection, named by the port that the server sees it coming from."""
        [connection] = [each for each in tuple(self._connections) if each.port == client_port]
        self._end(connection)

    def close(self) -> None:
        """Cuts every connection and takes no more."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in tuple(self._connections):
            self._end(connection)
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
            connection = _Connection(client=client, server=server, port=server.getsockname()[1])
            self._connections.add(connection)
            self._start(self._forward_requests, connection)
            self._start(self._forward_answers, connection)

    def _forward_requests(self, connection: _Connection) -> None:
        with suppress(OSError):
            while data := connection.client.recv(65_536):
                if self._armed is not None and _COMMIT in data:
                    fault, self._armed = self._armed, None
                    self.broken += 1
                    if fault is Fault.REQUEST_LOST:
                        break
                    connection.answer_lost.set()
                connection.server.sendall(data)
        self._end(connection)

    def _forward_answers(self, connection: _Connection) -> None:
        with suppress(OSError):
            while data := connection.server.recv(65_536):
                if connection.answer_lost.is_set():
                    # The server has answered, so the transaction is durable; the client gets no answer.
                    break
                connection.client.sendall(data)
        self._end(connection)

    def _end(self, connection: _Connection) -> None:
        # Once the socket is closed, another proxy's connection may get its port.
        self._connections.discard(connection)
        _cut(connection.client, connection.server)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Connection:
    """One connection of a client and the one to the server that carries it, which comes from `port`."""

    client: socket.socket
    server: socket.socket
    port: int
    answer_lost: threading.Event = field(default_factory=threading.Event)


def _cut(*sockets: socket.socket) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
        each.close()
