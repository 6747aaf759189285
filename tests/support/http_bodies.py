"""An HTTP server whose answers are bytes as a test states them, whole or not."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

Answer = Callable[[str], Iterator[bytes]]
"""The pieces of the answer to a request for a path, after which the connection ends."""


@contextmanager
def http_bodies(answer: Answer) -> Iterator[str]:
    """The URL of a server that answers so, one request after another on connections of their own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve_one(stream: socket.socket) -> None:
        with stream, suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head and (piece := stream.recv(65_536)):
                head += piece
            for piece in answer(head.split(b" ", 2)[1].decode()):
                stream.sendall(piece)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve_one, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, name="http bodies", daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
    finally:
        listener.close()


def page(body: bytes, *headers: str, length: int | None = None) -> bytes:
    """An answer with status 200. `length`: the Content-Length, that of the body by default; none if negative."""
    announced = len(body) if length is None else length
    lines = ["HTTP/1.1 200 OK", *headers, *([f"Content-Length: {announced}"] if announced >= 0 else [])]
    return "\r\n".join([*lines, "", ""]).encode() + body
