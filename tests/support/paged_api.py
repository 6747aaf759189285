"""An HTTP API with pages of records, as sources of kind `http` read it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass(kw_only=True)
class Paged:
    """An API with pages of records. `status`: of its answers; `requests`: the headers and the path of each request."""

    records: list[dict[str, Any]]
    page_size: int = 2
    status: int = 200
    text: bytes | None = None
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str) -> bytes:
        """The page that a request is answered with."""
        if self.text is not None:
            return self.text
        start = int(parse_qs(urlsplit(path).query).get("after", ["0"])[0])
        end = start + self.page_size
        following = str(end) if end <= len(self.records) else None
        page = {"data": {"items": self.records[start:end]}, "paging": {"next": following}}
        return json.dumps(page, indent=1).encode()


@contextmanager
def paged_api(records: list[dict[str, Any]], *, page_size: int = 2) -> Iterator[Paged]:
    """A server with these records, to which more may be added."""
    paged = Paged(records=records, page_size=page_size)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            paged.requests.append((self.path, dict(self.headers)))
            content = paged.answer(self.path)
            self.send_response(paged.status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="paged api")
    thread.start()
    paged.url = f"http://127.0.0.1:{server.server_port}/records?kind=order"
    try:
        yield paged
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
