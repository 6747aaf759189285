"""Servers that speak the protocol of MySQL as far as a test needs, and then do what no real one does."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from pymysql.constants import CLIENT, FIELD_TYPE

_UTF8: Final = 45
_CAPABILITIES: Final = CLIENT.CAPABILITIES & ~CLIENT.SSL
_QUERY: Final = 3

Reply = Callable[[str], Iterable[bytes] | None]
"""The contents of the packets that answer a statement; None: it stays silent."""

OK: Final = b"\0\0\0\2\0\0\0"
END: Final = b"\xfe\0\0\2\0"


def columns(*names: str, kind: int = FIELD_TYPE.VAR_STRING) -> list[bytes]:
    """The description of rows."""
    described = [
        b"".join(map(text, ("def", "", "", "", name, name)))
        + struct.pack("<BHIBHBxx", 12, _UTF8, 100, kind, 0, 0)
        for name in names
    ]
    return [bytes([len(names)]), *described, END]


def row(*values: str) -> bytes:
    """A row of texts."""
    return b"".join(map(text, values))


def text(value: str) -> bytes:
    """A text after its length, of less than 251 bytes."""
    found = value.encode()
    return bytes([len(found)]) + found


@dataclass(kw_only=True)
class FakeMysql:
    """A running server. `logins`: the packets that its clients have logged in with. `statements`: what they sent."""

    port: int
    logins: list[bytes] = field(default_factory=list)
    statements: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"mysql://reader@127.0.0.1:{self.port}/books"


@contextmanager
def fake_mysql(reply: Reply, *, greeting: bytes | None = None, login: bytes = OK) -> Iterator[FakeMysql]:
    """A server that replies so to all statements but SET, START and those that request facts of the rows."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = FakeMysql(port=listener.getsockname()[1])
    streams: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                stream, _ = listener.accept()
                streams.append(stream)
                arguments = (stream, server, reply, _GREETING if greeting is None else greeting, login)
                threading.Thread(target=_serve, args=arguments, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield server
    finally:
        listener.close()
        for stream in streams:
            with suppress(OSError):
                stream.shutdown(socket.SHUT_RDWR)
            stream.close()


_GREETING: Final = (
    b"\x0a5.7.0-fake\0"
    + struct.pack("<I", 1)
    + b"12345678\0"
    + struct.pack("<HBHHB", _CAPABILITIES & 0xFFFF, _UTF8, 2, _CAPABILITIES >> 16, 21)
    + bytes(10)
    + b"123456789012\0mysql_native_password\0"
)


def packet(number: int, content: bytes) -> bytes:
    """A packet with this number."""
    return struct.pack("<I", len(content))[:3] + bytes([number % 256]) + content


def _received(incoming: BinaryIO) -> bytes:
    head = incoming.read(4)
    if len(head) < len("head"):
        raise EOFError
    return incoming.read(int.from_bytes(head[:3], "little"))


def _serve(stream: socket.socket, server: FakeMysql, reply: Reply, greeting: bytes, login: bytes) -> None:
    with suppress(OSError, EOFError), stream, stream.makefile("rb") as incoming:
        stream.sendall(packet(0, greeting))
        server.logins.append(_received(incoming))
        stream.sendall(packet(2, login))
        while True:
            content = _received(incoming)
            if login is not OK:
                server.logins.append(content)
            if content[0] != _QUERY:
                return
            statement = content[1:].decode()
            server.statements.append(statement)
            for number, each in enumerate(_answer(statement, reply), 1):
                stream.sendall(packet(number, each))


def _answer(statement: str, reply: Reply) -> Iterable[bytes]:
    if statement.startswith(("SET ", "START ")):
        return [OK]
    if statement.endswith("LIMIT 0"):
        return [*columns("id", "seen"), END]
    if " OFFSET " in statement:
        # The last watermark of a round.
        return [*columns("seen"), row("99"), END]
    return reply(statement) or ()
