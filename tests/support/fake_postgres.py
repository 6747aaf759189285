"""Servers that speak the protocol of Postgres as far as a test needs, and then do what no real one does."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final

_SSL_REQUEST: Final = 80877103
_GSS_REQUEST: Final = 80877104
_TEXT_OID: Final = 25

Reply = Callable[[str], Iterable[bytes] | None]
"""The messages that answer a statement, before the server is ready again; None: it stays silent."""


def message(kind: bytes, content: bytes = b"") -> bytes:
    """A message of the server."""
    return kind + struct.pack("!i", len(content) + 4) + content


def columns(*names: str) -> bytes:
    """The description of rows of texts."""
    each = [name.encode() + b"\0" + struct.pack("!ihihih", 0, 0, _TEXT_OID, -1, -1, 1) for name in names]
    return message(b"T", struct.pack("!h", len(each)) + b"".join(each))


def row(*values: str) -> bytes:
    """A row of texts."""
    each = [struct.pack("!i", len(value.encode())) + value.encode() for value in values]
    return message(b"D", struct.pack("!h", len(each)) + b"".join(each))


def done(tag: str = "SELECT") -> bytes:
    """The end of a statement."""
    return message(b"C", tag.encode() + b"\0")


@dataclass(kw_only=True)
class FakePostgres:
    """A running server. `seen`: the parameters of its clients, the passwords, and the statements, in their order."""

    port: int
    parameters: list[dict[str, str]] = field(default_factory=list)
    passwords: list[str] = field(default_factory=list)
    statements: list[tuple[bytes, str]] = field(default_factory=list)
    """With `Q` for those of the simple protocol, which may be several at once, and `P` for a single one."""

    @property
    def url(self) -> str:
        return f"postgresql://reader@127.0.0.1:{self.port}/books"


@contextmanager
def fake_postgres(reply: Reply, *, asks_password: bool = False) -> Iterator[FakePostgres]:
    """A server that replies so to all statements but those that begin and end a transaction."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = FakePostgres(port=listener.getsockname()[1])
    streams: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                streams.append(stream)
                threading.Thread(
                    target=_serve, args=(stream, server, reply, asks_password), daemon=True
                ).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server
    finally:
        listener.close()
        for stream in streams:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
            stream.close()


class _Client:
    """One connection of a client."""

    def __init__(self, stream: socket.socket, incoming: BinaryIO) -> None:
        self.stream = stream
        self._incoming = incoming

    def read(self, size: int) -> bytes:
        found = self._incoming.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def content(self) -> bytes:
        return self.read(struct.unpack("!i", self.read(4))[0] - 4)


def _serve(stream: socket.socket, server: FakePostgres, reply: Reply, asks_password: bool) -> None:
    with suppress(OSError, EOFError), stream, stream.makefile("rb") as incoming:
        client = _Client(stream, incoming)
        _greet(client, server, asks_password)
        statement = ""
        while (kind := client.read(1)) != b"X":
            body = client.content()
            if kind in b"QP":
                statement = body.split(b"\0")[0 if kind == b"Q" else 1].decode()
                server.statements.append((kind, statement))
            if kind == b"S":
                stream.sendall(message(b"1") + message(b"2"))
            if kind in b"QS":
                _answer(stream, statement, reply)


def _greet(client: _Client, server: FakePostgres, asks_password: bool) -> None:
    startup = client.content()
    while struct.unpack("!i", startup[:4])[0] in (_SSL_REQUEST, _GSS_REQUEST):
        client.stream.sendall(b"N")
        startup = client.content()
    texts = startup[4:].rstrip(b"\0").decode().split("\0")
    server.parameters.append(dict(zip(texts[::2], texts[1::2], strict=True)))
    if asks_password:
        client.stream.sendall(message(b"R", struct.pack("!i", 3)))
        client.read(1)
        server.passwords.append(client.content().rstrip(b"\0").decode())
    client.stream.sendall(message(b"R", struct.pack("!i", 0)) + message(b"Z", b"I"))


def _answer(stream: socket.socket, statement: str, reply: Reply) -> None:
    first = statement.split(maxsplit=1)[0]
    # The columns are requested before the rows.
    described = [columns("id"), done()] if statement.endswith("LIMIT 0") else None
    found = [done(first)] if first == "BEGIN" else described or reply(statement)
    if found is None:
        return
    for part in found:
        stream.sendall(part)
    stream.sendall(message(b"Z", b"T"))
