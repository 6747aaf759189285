"""A receiver of webhook messages: a real HTTP server that notes what it gets and answers as it is configured to."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from app.infra.runtime.loopback import LOOPBACK


@dataclass(frozen=True, kw_only=True)
class Message:
    """One request. `header` names are in small letters."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]

    @property
    def data(self) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.body)["data"]
        return data

    def signatures_of(self, secret: str) -> int:
        """How many of its signatures are this secret's, computed again."""
        key = base64.b64decode(secret.removeprefix("whsec_"))
        content = b".".join([self.id.encode(), self.headers["webhook-timestamp"].encode(), self.body])
        expected = "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
        return self.headers["webhook-signature"].split(" ").count(expected)


@dataclass(kw_only=True)
class Receiver:
    """`answers` are the statuses of the next answers, with headers and body if need be; then it is always 200."""

    url: str
    messages: list[Message] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)

    def answer(self, *statuses: int, headers: dict[str, str] | None = None, body: bytes = b"") -> None:
        """What comes next."""
        self.answers += [(status, headers or {}, body) for status in statuses]

    @property
    def changes(self) -> list[dict[str, Any]]:
        """All changes of the messages that it took, in order of their arrival."""
        return [change for message in self.messages for change in message.data.get("changes", [])]

    def offsets(self) -> list[Sequence[int]]:
        """The ranges of the messages."""
        return [(message.data["since"], message.data["next_since"]) for message in self.messages]


@contextmanager
def receiving(tls: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Receives on a free port until the context is left."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.messages.append(Message(path=self.path, headers=headers, body=body))
            status, more, answer = receiver.answers.pop(0) if receiver.answers else (200, {}, b"")
            self.send_response(status)
            for name, value in {**more, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer((LOOPBACK, 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    scheme = "http" if tls is None else "https"
    receiver = Receiver(url=f"{scheme}://{LOOPBACK}:{server.server_port}/hook?of=headwater")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), name="receiver")
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
