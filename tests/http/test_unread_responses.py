"""Large responses that clients request and do not read."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from app.access.tenants.errors import RateLimited
from app.http.limits import threads as limits
from app.http.limits.threads import PARTY, PageThreads
from app.http.limits.unread_bytes import UnreadBytes
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.http import ORDERS, problem
from tests.support.postgres import TestServer
from tests.support.service import Service, running_service, settings_for
from tests.support.waiting import until

ROWS = 40_000
NDJSON = "application/x-ndjson"


def test_bodies_of_a_tenant_are_counted_until_they_are_sent() -> None:
    unread = UnreadBytes(100)
    body, other = b"a" * 60, b"b" * 70
    with unread.sending("acme", body):
        # Shared by several responses, it is in memory once.
        with unread.sending("acme", body), unread.sending("acme", body):
            assert unread.of("acme") == 60
        with unread.sending("acme", other), unread.sending("globex", body):
            assert (unread.of("acme"), unread.of("globex")) == (130, 60)
        assert unread.of("acme") == 60
    assert (unread.of("acme"), unread.of("globex")) == (0, 0)


@pytest.mark.anyio
async def test_pages_that_are_read_at_a_time_have_room_reserved() -> None:
    unread = UnreadBytes(160)
    order = list[int]()

    async def read(number: int, hold: asyncio.Event) -> None:
        async with unread.reading("acme", 10):
            order.append(number)
            await hold.wait()

    hold = asyncio.Event()
    reads = [asyncio.create_task(read(number, hold)) for number in range(40)]
    await asyncio.sleep(0.01)
    assert order == list(range(8))
    reads[20].cancel()
    reads[3].cancel()
    await asyncio.sleep(0.01)
    # In the order in which they came.
    assert order == list(range(9))
    hold.set()
    await asyncio.gather(*reads, return_exceptions=True)
    assert order == [number for number in range(40) if number != 20]
    assert unread.of("acme") == 0


@pytest.mark.anyio
async def test_request_waits_for_room_without_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    unread = UnreadBytes(100)
    threads = PageThreads(unread)

    async def page(tenant: str) -> str:
        PARTY.set(tenant)
        return await threads.run(lambda: tenant)

    body = bytes(100)
    with unread.sending("acme", body):
        waiting = [asyncio.create_task(page("acme")) for _ in range(100)]
        cancelled = waiting.pop()
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in waiting)
        assert await page("globex") == "globex"
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
    assert await asyncio.gather(*waiting) == ["acme"] * 99
    monkeypatch.setattr(limits, "_ROOM_SECONDS_MAX", 0.05)
    with unread.sending("acme", body):
        with pytest.raises(RateLimited) as refused:
            await page("acme")
        assert refused.value.facts == {
            "quota": "unread_bytes",
            "limit": 100,
            "used": 100,
            "limited": "tenant",
            "retry_after_seconds": 1,
        }
    assert await page("acme") == "acme"


@pytest.fixture
def bounded(
    postgres: TestServer, redis: EmbeddedValkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Service]:
    """A service whose tenants may leave one byte unread."""
    monkeypatch.setattr(limits, "_ROOM_SECONDS_MAX", 0.2)
    with postgres.fresh_database() as name:
        urls = (postgres.application_url(name), postgres.admin_url(name), redis.url)
        with running_service(settings_for(*urls, tmp_path, unread_bytes_max=1)) as service:
            yield service


def _request(service: Service, path: str, key: str, following: str | None = None) -> socket.socket:
    """A connection that has requested a page, or two, and reads nothing of it."""
    address = urlsplit(service.url)
    connection = socket.socket()
    # Before it connects: the window of the connection is never larger.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.settimeout(30)
    connection.connect((address.hostname, address.port))
    head = f"HTTP/1.1\r\nHost: tests\r\nAuthorization: Bearer {key}"
    if following is not None:
        connection.sendall(f"GET {path} {head}\r\n\r\n".encode())
        path = following
    connection.sendall(f"GET {path} {head}\r\nConnection: close\r\n\r\n".encode())
    return connection


def _content(connection: socket.socket) -> bytes:
    received = b"".join(iter(lambda: connection.recv(1024 * 1024), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 ")
    return body


def test_tenant_that_reads_no_page_gets_no_more_of_them_and_delays_no_other_tenant(
    bounded: Service, new_orders: Callable[[Service, str], tuple[str, str]]
) -> None:
    key, orders = new_orders(bounded, "acme")
    other_key, other_orders = new_orders(bounded, "globex")
    page = f"{orders}/changes?limit={ROWS}"
    with bounded.client(key) as client, bounded.client(other_key) as other:
        expected = client.get(page).content
        for path in (page, f"{page}&since=snapshot"):
            with _request(bounded, path, key) as unread:
                refused = until(
                    lambda: next(
                        (
                            answer
                            for answer in [client.get(f"{orders}/rows?limit=10")]
                            if answer.status_code != 200
                        ),
                        None,
                    ),
                    "the page to be unread",
                )
                members = problem(refused, 429, "rate-limited")
                assert (members["quota"], members["limited"], members["limit"]) == (
                    "unread_bytes",
                    "tenant",
                    1,
                )
                assert refused.headers["retry-after"] == "1"
                # A page in the cache is in memory once, for all clients.
                assert client.get(page).content == expected
                # What reads no page is not limited, and neither are others.
                assert client.get(orders).status_code == 200
                assert other.get(f"{other_orders}/rows?limit=10").status_code == 200
                received = _content(unread)
            if path == page:
                assert received == expected
            assert client.get(f"{orders}/rows?limit=10").status_code == 200
        # The connection serves the second of two requests once the first response is read.
        with _request(bounded, page, key, page) as both:
            assert both.recv(15) == b"HTTP/1.1 200 OK"
            rest = b"".join(iter(lambda: both.recv(1024 * 1024), b""))
            assert rest.count(b"HTTP/1.1 200 OK") == 1
            assert rest.count(expected) == 2
        # A client that goes away leaves nothing unread.
        _request(bounded, page, key).close()
        until(lambda: client.get(f"{orders}/rows?limit=10").status_code == 200, "the room to be free again")


@pytest.fixture
def new_orders() -> Callable[[Service, str], tuple[str, str]]:
    """The key of a new tenant, and the path of its table of `ROWS` rows."""

    def make(service: Service, tenant: str) -> tuple[str, str]:
        key = service.new_key(tenant)
        lines = "".join(f'{{"id": {number}, "note": "{number:0160}"}}\n' for number in range(ROWS))
        with service.client(key) as client:
            orders: str = client.post("/datasets", json=ORDERS).headers["location"]
            sent: httpx2.Response = client.post(
                f"{orders}/writes?operation=upsert", content=lines, headers={"Content-Type": NDJSON}
            )
            assert sent.status_code == 202, sent.text
            service.work()
        return key, orders

    return make
