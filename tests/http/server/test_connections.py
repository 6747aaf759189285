"""Bounds of connections, over sockets. Each holds before a credential is read."""

import json
import re
import socket
import ssl
import subprocess
import time
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from http.client import HTTPConnection
from threading import Thread

import httpx2
import pytest

from app.infra.runtime.stack import is_api_ready, is_worker_ready
from tests.support.http import ORDERS, problem, upsert
from tests.support.service import running_service
from tests.support.waiting import until

MEBIBYTE = 1024 * 1024
HEAD = b"GET /health/live HTTP/1.1\r\nHost: test\r\n"


@pytest.fixture(scope="module")
def bounded(service):
    """A second API on the same servers, with short times and few connections."""
    settings = replace(
        service.settings,
        trusted_proxies=(),
        header_seconds=0.5,
        request_stall_seconds=1.0,
        response_stall_seconds=1.0,
        connections_max=24,
        address_connections_max=16,
        cors_origins=("https://app.example.com",),
    )
    with running_service(settings) as running:
        yield running


@contextmanager
def connection(service, address="127.0.0.1"):
    host, port = service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20, source_address=(address, 0)) as connected:
        yield connected


def received(connected):
    """Everything until the service closes the connection."""
    parts = []
    try:
        while part := connected.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


def send_for_ever(connected):
    while True:
        connected.sendall(b"\r\n")
        time.sleep(0.05)


def refusal(reply, status, code):
    """The members of a refusal, which is the whole reply."""
    head, _, body = reply.partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    assert lines[0].startswith(f"http/1.1 {status} "), head
    for line in (
        "content-type: application/problem+json",
        "connection: close",
        "x-content-type-options: nosniff",
    ):
        assert line in lines
    members = json.loads(body)
    assert (members["type"], members["status"]) == (f"/problems/{code}", status)
    return members


@pytest.mark.parametrize(
    ("request_bytes", "status", "code"),
    [
        (b"FOO / HTTP/1.1\r\nHost: test\r\n\r\n", 400, "malformed-request"),
        (b"GET / HTTQ/1.1\r\n\r\n", 400, "malformed-request"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed-request"),
        (b"CONNECT test:80 HTTP/1.1\r\nHost: test\r\n\r\n", 400, "malformed-request"),
        (b"CONNECT /health/live HTTP/1.1\r\nHost: test\r\n\r\n", 400, "malformed-request"),
        (
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            "malformed-request",
        ),
        (b"GET /health/live HTTP/1.1\r\nHost: a\r\nX: y\r\nhost: a\r\n\r\n", 400, "malformed-request"),
        (b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nHost: b\r\n\r\n", 400, "malformed-request"),
        (b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\n", 414, "url-too-long"),
        (b"GET /" + b"a" * 17_000 + b" HTTP/1.1\r\nHost: test\r\n\r\n", 414, "url-too-long"),
        (HEAD + b"X: y\r\n" * 101 + b"\r\n", 431, "headers-too-large"),
        (HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n", 431, "headers-too-large"),
        (b"\r\n" * 40_000, 431, "headers-too-large"),
        (
            b"POST /datasets HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nX: "
            + b"y" * 90_000,
            None,
            None,
        ),
    ],
)
def test_bad_http_is_refused_with_a_problem_and_the_connection_is_closed(
    bounded, request_bytes, status, code
):
    with connection(bounded) as connected:
        connected.sendall(request_bytes)
        reply = received(connected)
    if code is not None:
        refusal(reply, status, code)


def test_endless_header_is_refused_after_the_limit(bounded):
    sent = 0
    with connection(bounded) as connected:
        connected.sendall(HEAD + b"X-Endless: ")
        try:
            while sent < 120 * MEBIBYTE:
                sent += connected.send(b"y" * 65536)
        except (BrokenPipeError, ConnectionResetError):
            pass
    assert sent < 32 * MEBIBYTE


def test_headers_within_the_limits_are_accepted(bounded):
    with httpx2.Client(base_url=bounded.url, trust_env=False) as client:
        headers = {f"X-Filler-{number}": "y" * 600 for number in range(90)}
        assert client.get("/health/live", headers=headers).status_code == 200


@pytest.mark.parametrize("beginning", [b"", b"\r\n", HEAD + b"X: "])
def test_headers_that_are_not_sent_in_time_end_the_connection(bounded, beginning):
    with connection(bounded) as connected:
        connected.sendall(beginning)
        reply = received(connected)
    if beginning:
        refusal(reply, 408, "request-timeout")
    else:
        assert reply == b""


def test_second_request_of_a_connection_is_bounded_like_the_first(bounded):
    with connection(bounded) as connected:
        connected.sendall(HEAD + b"\r\n")
        assert connected.recv(65536).startswith(b"HTTP/1.1 200")
        time.sleep(1.5)
        connected.sendall(HEAD)
        refusal(received(connected), 408, "request-timeout")


def test_body_that_stalls_is_refused_and_a_slow_one_is_not(bounded):
    key = bounded.new_key("slow bodies")
    text = json.dumps(ORDERS).encode() + b" " * 30_000
    head = (
        f"POST /datasets HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
    ).encode()
    with connection(bounded) as stalled, connection(bounded) as slow:
        stalled.sendall(head + text[:20])
        slow.sendall(head)
        for start in range(0, len(text), 4_000):
            slow.sendall(text[start : start + 4_000])
            time.sleep(0.35)
        assert slow.recv(65536).startswith(b"HTTP/1.1 201")
        refusal(received(stalled), 408, "request-timeout")


def test_reader_that_stops_reading_is_disconnected(bounded, caplog):
    caplog.set_level("INFO", logger="headwater.access")
    with connection(bounded) as connected:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        # Pipelined: the responses exceed what the sockets of both sides hold.
        connected.sendall(b"".join([b"GET /schema HTTP/1.1\r\nHost: test\r\n\r\n"] * 40))
        deadline = time.monotonic() + 15
        while "stopped reading" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(connected)


def test_pipelined_requests_are_answered_in_their_order_however_many_there_are(bounded):
    request = "GET /health/live HTTP/1.1\r\nHost: test\r\nX-Request-Id: request-{}\r\n\r\n"
    ids = [f"request-{number}" for number in range(3_000)]
    last = HEAD + b"Connection: close\r\n\r\n"
    with connection(bounded) as connected:
        sending = Thread(
            target=connected.sendall,
            args=("".join(map(request.format, range(3_000))).encode() + last,),
            name="sender",
        )
        sending.start()
        reply = received(connected)
        sending.join()
    assert re.findall(r"x-request-id: (request-\d+)\r\n", reply.decode()) == ids
    assert reply.count(b"HTTP/1.1 200 OK") == 3_001


@pytest.mark.parametrize("size", [1_000_000, 7])
def test_pipelined_bodies_are_divided_correctly(service, client, orders, size):
    def head(framing):
        return (
            f"POST {orders}/writes HTTP/1.1\r\nHost: test\r\nContent-Type: application/x-ndjson\r\n"
            f"Authorization: {client.headers['authorization']}\r\n{framing}\r\n\r\n"
        )

    def body(number):
        return f'{{"id": {number}}}\r\n\r\n\r\n{{"id": {number + 1}}}\r\n\r\n'

    def chunk(text):
        return f"{len(text):x}\r\n{text}\r\n"

    sent = "".join(
        [
            head(f"Content-Length: {len(body(1))}") + body(1),
            head("Transfer-Encoding: chunked") + chunk(body(3)) + chunk("\r\n\r\n") + "0\r\n\r\n",
            head("Transfer-Encoding: chunked") + chunk(body(5)) + "0\r\nTrailer: x\r\n\r\n",
            head(f"Content-Length: {len(body(7))}\r\nConnection: close") + body(7),
        ]
    ).encode()
    with connection(service) as connected:
        for start in range(0, len(sent), size):
            connected.sendall(sent[start : start + size])
        reply = received(connected)
    assert reply.count(b"HTTP/1.1 202 Accepted") == 4, reply
    service.work()
    rows = client.get(f"{orders}/rows").json()["rows"]
    assert sorted(row["id"] for row in rows) == list(range(1, 9))


def test_new_connection_waits_for_few_of_the_pipelined_requests_of_others(service, caplog):
    caplog.set_level("INFO", logger="headwater.access")

    def responses():
        return [record.facts["request"] for record in caplog.records if record.name == "headwater.access"]

    with ExitStack() as stack:
        others = [stack.enter_context(connection(service)) for _ in range(300)]
        for other in others:
            other.sendall((HEAD + b"\r\n") * 29 + HEAD + b"Connection: close\r\n\r\n")
        until(lambda: len(responses()) > 2 * len(others), "the first responses")
        before = len(responses())
        with connection(service) as connected:
            connected.sendall(HEAD + b"X-Request-Id: mine-1234\r\n\r\n")
            assert connected.recv(65536).startswith(b"HTTP/1.1 200")
        for other in others:
            assert received(other).count(b"HTTP/1.1 200 OK") == 30
        mine = responses().index("mine-1234")
    # A tenth of what the others have sent; on a busy machine the first bytes of the new connection are read late.
    assert before < mine < before + 3 * len(others)


def test_connections_of_one_address_and_of_all_are_bounded(bounded):
    def answers(address):
        held.append(stack(address))
        held[-1].sendall(HEAD + b"\r\n")
        return held[-1].recv(65536)

    def stack(address):
        host, port = bounded.url.removeprefix("http://").split(":")
        return socket.create_connection((host, int(port)), timeout=20, source_address=(address, 0))

    held: list[socket.socket] = []
    try:
        for _ in range(16):
            assert answers("127.0.0.2").startswith(b"HTTP/1.1 200")
        refused = answers("127.0.0.2")
        refusal(refused, 503, "unavailable")
        assert b"retry-after: 5" in refused
        for _ in range(8):
            assert answers("127.0.0.3").startswith(b"HTTP/1.1 200")
        refusal(answers("127.0.0.4"), 503, "unavailable")
        for each in held:
            each.close()
        deadline = time.monotonic() + 10
        while not answers("127.0.0.2").startswith(b"HTTP/1.1 200"):
            assert time.monotonic() < deadline
    finally:
        for each in held:
            each.close()


def test_trusted_proxy_has_no_bound_of_its_own(service):
    # The settings of tests trust loopback.
    assert service.settings.trusted_proxies
    with httpx2.Client(base_url=service.url, trust_env=False) as client:
        answer = client.get("/health/live", headers={"X-Forwarded-Proto": "https"})
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize("framing", ["content-length", "chunked"])
def test_request_with_upgrade_keeps_its_body_and_its_connection(service, client, orders, framing):
    host, port = service.url.removeprefix("http://").split(":")
    body = json.dumps(upsert({"id": 1, "note": "from Java"})).encode()
    parts = [body[:20], body[20:]]
    headers = {
        "Authorization": client.headers["authorization"],
        "Content-Type": "application/json",
        **({"Content-Length": str(len(body))} if framing == "content-length" else {}),
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAEAAEAAAAIAAAAAAAMAAAAAAAQBAAAAAAUAAEAAAAYABgAA",
    }
    with closing(HTTPConnection(host, int(port), timeout=20)) as connected:
        connected.request(
            "POST", f"{orders}/writes", iter(parts), headers, encode_chunked=framing == "chunked"
        )
        accepted = connected.getresponse()
        assert (accepted.status, accepted.version) == (202, 11), accepted.read()
        assert accepted.headers["connection"] is None
        accepted.read()
        first_socket = connected.sock
        service.work()
        connected.request("GET", f"{orders}/rows", headers={**headers, "Content-Length": "0"})
        rows = connected.getresponse()
        assert rows.status == 200
        assert json.loads(rows.read())["rows"] == [{"id": 1, "note": "from Java"}]
        assert connected.sock is first_socket


def test_requests_with_upgrade_are_answered_in_their_order_wherever_they_are_divided(bounded):
    upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    last = HEAD + b"Connection: Upgrade, close\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\n{}"
    sent = upgrade * 3 + (HEAD + b"\r\n") + last
    for size in (len(sent), 50):
        with connection(bounded) as connected:
            for start in range(0, len(sent), size):
                connected.sendall(sent[start : start + size])
            reply = received(connected)
        assert reply.count(b"HTTP/1.1 200 OK") == 5
        assert reply.count(b"HTTP/1.1") == 5


def test_other_protocol_after_a_request_with_upgrade_is_refused(bounded):
    with connection(bounded) as connected:
        connected.sendall(HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
        assert connected.recv(65536).startswith(b"HTTP/1.1 200")
        connected.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        refusal(received(connected), 400, "malformed-request")


def test_every_response_has_security_headers(service, client, orders):
    anonymous = httpx2.Client(base_url=service.url, trust_env=False)
    with anonymous:
        answers = [
            client.get(orders),
            client.get("/nowhere"),
            client.options(orders),
            anonymous.get("/datasets"),
            anonymous.options("/nowhere"),
            anonymous.get("/schema"),
        ]
    for answer in answers:
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["cache-control"] == "no-store"
        assert "strict-transport-security" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers


def test_options_discloses_nothing_of_a_tenant(service, orders):
    with httpx2.Client(base_url=service.url, trust_env=False) as anonymous:
        existing, unknown = anonymous.options(orders), anonymous.options("/datasets/nowhere")
        assert (
            (existing.status_code, existing.content) == (unknown.status_code, unknown.content) == (204, b"")
        )
        assert existing.headers["allow"] == unknown.headers["allow"]
        problem(anonymous.options("/nowhere"), 404, "not-found")
        problem(anonymous.request("PROPFIND", "/datasets"), 405, "method-not-allowed")


def test_pages_of_allowed_origins_may_call_the_service(bounded):
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    with httpx2.Client(base_url=bounded.url, trust_env=False) as anonymous:
        allowed = anonymous.options("/datasets", headers={"Origin": "https://app.example.com", **preflight})
        assert allowed.status_code == 204
        assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
        assert "authorization" in allowed.headers["access-control-allow-headers"]
        answer = anonymous.get("/datasets", headers={"Origin": "https://app.example.com"})
        problem(answer, 401, "unauthorized")
        assert answer.headers["access-control-allow-origin"] == "https://app.example.com"
        assert "Retry-After" in answer.headers["access-control-expose-headers"]
        other = anonymous.options("/datasets", headers={"Origin": "https://other.example.com", **preflight})
        assert other.status_code == 400
        assert "access-control-allow-origin" not in other.headers


def test_service_with_a_certificate_speaks_tls_only(service, tmp_path):
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*command, *names, *files], check=True, capture_output=True)
    settings = replace(service.settings, tls_certificate=certificate, tls_key=key)
    with running_service(settings) as running:
        url = running.url.replace("http:", "https:")
        context = ssl.create_default_context(cafile=str(certificate))
        with httpx2.Client(base_url=url, verify=context, trust_env=False) as client:
            answer = client.get("/health/live")
            assert answer.status_code == 200
            assert answer.headers["strict-transport-security"] == "max-age=31536000"
        port = int(url.rpartition(":")[2])
        assert is_api_ready(port, str(certificate))
        # There is no worker.
        assert not is_worker_ready(port, running.new_key("probe"), str(certificate))
        with httpx2.Client(base_url=running.url, trust_env=False) as plain, pytest.raises(httpx2.HTTPError):
            plain.get("/health/live")
