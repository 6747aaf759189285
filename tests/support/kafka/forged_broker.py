"""A broker that answers requests for metadata only, and names the leader that a test wants."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

TOPIC: Final = "readings"
_METADATA, _API_VERSIONS = 3, 18
_UNSUPPORTED_VERSION: Final = 35
# The requests that it claims to know, each in its oldest versions.
_VERSIONS: Final = ((1, 0, 4), (2, 0, 5), (_METADATA, 0, 1), (_API_VERSIONS, 0, 0))


@dataclass(kw_only=True)
class ForgedBroker:
    """`leader`: host and port of the leader in replies after the first `honest` ones; before, it is the broker."""

    listener: socket.socket
    leader: tuple[str, int]
    honest: int
    replies: int = 0
    _connections: list[socket.socket] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Of 127.0.0.1."""
        port: int = self.listener.getsockname()[1]
        return port

    def serve(self) -> None:
        """Accepts connections until the listener is closed."""
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def end(self) -> None:
        """Closes all connections."""
        self.listener.shutdown(socket.SHUT_RDWR)
        for each in (self.listener, *self._connections):
            each.close()

    def _answer(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while len(size := stream.read(4)) == 4:
                    request = stream.read(int.from_bytes(size, "big"))
                    kind, version, number = struct.unpack(">hhi", request[:8])
                    reply = struct.pack(">i", number) + self._reply(kind, version)
                    connection.sendall(struct.pack(">i", len(reply)) + reply)
        except (OSError, ValueError):
            return

    def _reply(self, kind: int, version: int) -> bytes:
        if kind == _API_VERSIONS:
            error = _UNSUPPORTED_VERSION if version else 0
            listed = b"".join(struct.pack(">hhh", *each) for each in _VERSIONS)
            return struct.pack(">hi", error, len(_VERSIONS)) + listed
        if kind != _METADATA:
            raise ValueError(f"no reply to a request of kind {kind}")
        self.replies += 1
        leader = 1 if self.replies <= self.honest else 2
        brokers = [(1, "127.0.0.1", self.port)] + ([(2, *self.leader)] if leader == 2 else [])
        listed = b"".join(
            struct.pack(">i", each) + _text(host) + struct.pack(">ih", port, -1)
            for each, host, port in brokers
        )
        partition = struct.pack(">hiiiiii", 0, 0, leader, 1, leader, 1, leader)
        topic = struct.pack(">h", 0) + _text(TOPIC) + struct.pack(">bi", 0, 1) + partition
        return struct.pack(">i", len(brokers)) + listed + struct.pack(">ii", 1, 1) + topic


@contextmanager
def forged_broker(leader: tuple[str, int], honest: int) -> Iterator[ForgedBroker]:
    """A broker on a free port of 127.0.0.1."""
    broker = ForgedBroker(listener=socket.create_server(("127.0.0.1", 0)), leader=leader, honest=honest)
    thread = threading.Thread(target=broker.serve, daemon=True)
    thread.start()
    try:
        yield broker
    finally:
        broker.end()
        thread.join()


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
