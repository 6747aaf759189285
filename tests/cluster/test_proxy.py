"""The proxy of docker-compose.yml sends requests to what is ready, before real servers that count them."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
import yaml

from app.infra.runtime.loopback import LOOPBACK, free_port
from clients.cluster.composition import interpolated
from tests.cluster.conftest import PROGRAMS, ROOT
from tests.support.waiting import until

CADDYFILE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["configs"]["ingress"]["content"]


class Upstream:
    """A server that is ready or not, and answers each request with its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ready = True
        self.counts: Counter[str] = Counter()
        self.server = ThreadingHTTPServer((LOOPBACK, 0), self._handler())
        self.server.daemon_threads = True

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.server.server_port}"

    @contextmanager
    def serving(self) -> Iterator[None]:
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), name=self.name)
        thread.start()
        try:
            yield
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        upstream = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                upstream.counts[self.path] += 1
                unready = self.path == "/health/ready" and not upstream.ready
                body = upstream.name.encode()
                self.send_response(503 if unready else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@contextmanager
def proxying(folder: Path, *addresses: str) -> Iterator[str]:
    """The URL of the proxy before these addresses."""
    path = os.pathsep.join([str(PROGRAMS), os.environ.get("PATH", "")])
    caddy = shutil.which(os.environ.get("CADDY") or "caddy", path=path)
    if caddy is None:
        pytest.skip("caddy is not here; `make cluster-programs` installs it")
    port = free_port()
    file = folder / "Caddyfile"
    file.write_text(interpolated(CADDYFILE, {}))
    variables = {"BIND": LOOPBACK, "LISTEN": f":{port}", "UPSTREAMS": " ".join(["to", *addresses])}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [caddy, "run", "--adapter", "caddyfile", "--config", file],
            env={"PATH": os.environ["PATH"], "HOME": str(folder), **variables},
            stdout=log,
            stderr=log,
        )
    try:
        yield f"http://{LOOPBACK}:{port}"
    finally:
        process.terminate()
        process.wait(30)


def names(client: httpx2.Client, requests: int = 20) -> set[str]:
    """Who answers; every answer is one of success."""
    answers = [client.get("/datasets") for _ in range(requests)]
    assert {each.status_code for each in answers} == {200}
    return {each.text for each in answers}


def test_what_is_not_ready_gets_no_requests_until_it_is(tmp_path: Path) -> None:
    first, second = Upstream("first"), Upstream("second")
    first.ready = False
    with ExitStack() as stack:
        for each in (first, second):
            stack.enter_context(each.serving())
        # A name of the file without a container has no address.
        url = stack.enter_context(
            proxying(tmp_path, first.address, second.address, "headwater-api-8.invalid:8080")
        )
        client = stack.enter_context(httpx2.Client(base_url=url, trust_env=False, timeout=30))
        # It starts.
        until(lambda: first.counts["/health/ready"] > 1, "checks of what is not ready")
        assert names(client) == {"second"}
        assert first.counts["/datasets"] == 0
        first.ready = True
        until(lambda: names(client) == {"first", "second"}, "requests to what is ready now")
        # It stops: it answers still, and gets no request.
        second.ready = False
        until(lambda: names(client) == {"first"}, "the check that finds out")
        before = second.counts["/datasets"]
        time.sleep(1.5)
        assert names(client) == {"first"}
        assert second.counts["/datasets"] == before
        assert b"health_checker" not in (tmp_path / "log").read_bytes()
