"""A proxy before the API that sends other headers than it gets: its own name for the service, and what it adds."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, cast
from urllib.parse import urlsplit

_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})


class HostProxy(ThreadingHTTPServer):
    """Forwards to `target`, the address of a service, which is set later. `headers`: those that it sets.

    `before`: called with the method and the path of a request before it is forwarded. `answers`: methods and paths of
    requests with the statuses that were sent, in the order of their ends.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.target = ""
        self.headers: Mapping[str, str] = {}
        self.paths: list[str] = []
        self.answers: list[tuple[str, str, int]] = []
        self.before: Callable[[str, str], None] = lambda *_: None

    @property
    def url(self) -> str:
        """Its own address."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        proxy = cast(HostProxy, self.server)
        proxy.paths.append(self.path)
        proxy.before(self.command, self.path)
        size = int(self.headers.get("Content-Length", 0))
        headers = {name: text for name, text in self.headers.items() if name.lower() not in _HOP}
        for name, text in proxy.headers.items():
            # The name may be there in another case.
            headers = {each: value for each, value in headers.items() if each.lower() != name.lower()}
            headers[name] = text
        connection = http.client.HTTPConnection(urlsplit(proxy.target).netloc, timeout=30)
        try:
            connection.request(self.command, self.path, self.rfile.read(size) or None, headers)
            self._answer(connection.getresponse())
        finally:
            connection.close()

    do_HEAD = do_POST = do_GET  # noqa: N815  (the names that the server calls)

    def _answer(self, answer: http.client.HTTPResponse) -> None:
        body = answer.read()
        cast(HostProxy, self.server).answers.append((self.command, self.path, answer.status))
        self.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in {*_HOP, "content-length"}:
                self.send_header(name, text)
        # That of HEAD is the size of the object.
        size = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(body))
        if size is not None and answer.status != http.client.NO_CONTENT:
            self.send_header("Content-Length", size)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def host_proxy() -> Iterator[HostProxy]:
    """A proxy on a free port, until the end of the block."""
    proxy = HostProxy()
    thread = Thread(target=proxy.serve_forever, name="proxy")
    thread.start()
    try:
        yield proxy
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join(5)
