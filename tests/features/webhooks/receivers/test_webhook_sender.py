"""What is posted arrives as it is, at the address that was checked, and no receiver holds a worker up."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from app.features.webhooks.receivers.http_sender import HttpSender
from app.features.webhooks.values import RefusedUrl
from app.infra.outbound.addresses import Rules
from app.infra.outbound.connector import resolve
from tests.support.receiver import Receiver, receiving

# Made with OpenSSL: an authority, and its certificate for receiver.example with the key.
CERTIFICATES = Path(__file__).parents[1] / "certificates"
LOCAL = Rules.of(("127.0.0.0/8",), http=True)


class Resolver:
    """Gives the configured answers, one answer after another, and counts."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)
        self.hosts: list[str] = []

    def __call__(self, host: str, port: int) -> list[str]:
        self.hosts.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def trusting(authority: str) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=CERTIFICATES / authority)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as running:
        yield running


@pytest.fixture
def tls_receiver() -> Iterator[Receiver]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "receiver.pem")
    with receiving(context) as running:
        yield running


@contextmanager
def speaking(*parts: bytes, pause_seconds: float = 0.0) -> Iterator[str]:
    """The URL of a server that says these bytes to each client, with pauses, and then nothing."""
    done = threading.Event()

    def serve() -> None:
        with server.accept()[0] as connection:
            connection.recv(65536)
            for part in parts:
                connection.sendall(part)
                if done.wait(pause_seconds):
                    return
            done.wait(10)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/"
        done.set()
        thread.join()


def test_message_arrives_as_it_was_sent(receiver: Receiver) -> None:
    reply = HttpSender(rules=LOCAL).send(
        receiver.url, {"webhook-id": "m", "Content-Type": "x/y"}, b"\x00body"
    )
    assert reply.delivered
    assert (reply.status, reply.error) == (200, None)
    [message] = receiver.messages
    assert (message.path, message.body) == ("/hook?of=headwater", b"\x00body")
    assert message.headers["webhook-id"] == "m"
    assert message.headers["content-type"] == "x/y"
    assert message.headers["user-agent"].startswith("Headwater")
    assert message.headers["host"] == receiver.url.split("/")[2]


def test_failed_reply_has_the_status_and_text_of_the_receiver(receiver: Receiver) -> None:
    receiver.answer(503, headers={"Retry-After": "7"}, body=b"busy\0 \xff" + b"x" * 100_000)
    reply = HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}")
    assert not reply.delivered
    assert reply.status == 503
    assert reply.retry_after_seconds == 7
    assert reply.error is not None
    assert reply.error.startswith("busy\ufffd \ufffdxxx")
    assert len(reply.error) <= 1024


def test_retry_after_may_be_a_date(receiver: Receiver) -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    for retry_after, low, high in ((soon, 80, 91), ("Mon, 01 Jan 2024 00:00:00 GMT", 0, 0)):
        receiver.answer(429, headers={"Retry-After": retry_after})
        reply = HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}")
        assert reply.retry_after_seconds is not None
        assert low <= reply.retry_after_seconds <= high


@pytest.mark.parametrize("text", ["soon", "-1", "1" * 10, "Sat, 21 Nov 2026 10:00:00 +9999999999999"])
def test_retry_after_that_is_no_time_is_ignored(receiver: Receiver, text: str) -> None:
    receiver.answer(429, headers={"Retry-After": text})
    assert HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}").retry_after_seconds is None


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    with receiving() as other:
        receiver.answer(307, headers={"Location": other.url})
        reply = HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}")
        assert (reply.status, reply.delivered) == (307, False)
        assert "redirects are not followed" in str(reply.error)
        assert not other.messages


def test_status_that_names_no_other_url_is_no_redirect(receiver: Receiver) -> None:
    receiver.answer(304)
    reply = HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}")
    assert (reply.status, reply.delivered, reply.error) == (304, False, "Not Modified")


def test_proxies_of_the_environment_are_not_used(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert HttpSender(rules=LOCAL).send(receiver.url, {}, b"{}").delivered


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://2130706433:{port}/"]
)
def test_internal_addresses_are_refused_by_default(receiver: Receiver, url: str) -> None:
    port = receiver.url.split(":")[2].split("/")[0]
    sender = HttpSender(rules=Rules(http=True))
    reply = sender.send(url.format(port=port), {}, b"{}")
    assert reply.status is None
    assert "is a private address" in str(reply.error)
    with pytest.raises(RefusedUrl, match="is a private address"):
        sender.check(url.format(port=port))
    assert not receiver.messages


def test_host_is_resolved_once_per_attempt(receiver: Receiver) -> None:
    """A name that is fine when it is checked and inside when it is connected to gets nowhere: there is one look-up."""
    port = receiver.url.split(":")[2].split("/")[0]
    resolver = Resolver(["127.0.0.1"], ["10.0.0.1"])
    sender = HttpSender(rules=LOCAL, resolve=resolver)
    assert sender.send(f"http://hooks.example:{port}/", {}, b"{}").delivered
    assert resolver.hosts == ["hooks.example"]
    assert receiver.messages[0].headers["host"] == f"hooks.example:{port}"
    again = sender.send(f"http://hooks.example:{port}/", {}, b"{}")
    assert "is a private address" in str(again.error)
    assert len(receiver.messages) == 1


def test_unresolvable_host_is_refused() -> None:
    def fails(host: str, port: int) -> list[str]:
        raise socket.gaierror("no such host")

    sender = HttpSender(rules=Rules(), resolve=fails)
    with pytest.raises(RefusedUrl, match="could not be looked up"):
        sender.check("https://nowhere.example/")
    assert not sender.send("https://nowhere.example/", {}, b"{}").delivered


def test_names_and_numbers_are_resolved_alike() -> None:
    assert resolve("0177.0.0.1", 80) == ["127.0.0.1"]
    assert resolve("::1", 80) == ["::1"]


def test_certificate_must_match_the_host_and_not_the_address(
    tls_receiver: Receiver,
) -> None:
    port = tls_receiver.url.split(":")[2].split("/")[0]

    def reply_of(host: str, tls: ssl.SSLContext) -> tuple[bool, str]:
        sender = HttpSender(
            rules=Rules.of(("127.0.0.0/8",), http=False), resolve=Resolver(["127.0.0.1"]), tls=tls
        )
        reply = sender.send(f"https://{host}:{port}/", {}, b"{}")
        return reply.delivered, str(reply.error)

    ours = trusting("authority.pem")
    assert reply_of("receiver.example", ours) == (True, "None")
    assert reply_of("RECEIVER.example.", ours) == (True, "None")
    assert len(tls_receiver.messages) == 2
    delivered, error = reply_of("other.example", ours)
    assert not delivered
    assert "Hostname mismatch" in error
    delivered, error = reply_of("receiver.example", ssl.create_default_context())
    assert not delivered
    assert "CERTIFICATE_VERIFY_FAILED" in error
    assert len(tls_receiver.messages) == 2


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b"H"] * 100,
        [b"HTTP/1.1 200 OK\r\n"] + [b"X-A: b\r\n"] * 100,
        [b"HTTP/1.1 100 Continue\r\n\r\n"] * 100,
    ],
    ids=["silence", "trickle", "endless headers", "patience"],
)
def test_slow_receiver_is_abandoned_in_time(parts: list[bytes]) -> None:
    with speaking(*parts, pause_seconds=0.05) as url:
        started = time.monotonic()
        reply = HttpSender(rules=LOCAL, total_seconds_max=0.3).send(url, {}, b"{}")
        assert time.monotonic() - started < 2
    assert not reply.delivered
    assert "TimeoutError" in str(reply.error)


def test_endless_body_does_not_change_the_status() -> None:
    head = b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"
    with speaking(head, *[b"1\r\nx\r\n"] * 100, pause_seconds=0.05) as url:
        assert HttpSender(rules=LOCAL, total_seconds_max=0.3).send(url, {}, b"{}").delivered


@pytest.mark.parametrize("answer", [b"\x16\x03\x01", b"HTTP/9 x\r\n\r\n", b"HTTP/1.1 200 " + b"x" * 70_000])
def test_response_that_is_not_http_is_a_failure(answer: bytes) -> None:
    with speaking(answer) as url:
        reply = HttpSender(rules=LOCAL, total_seconds_max=0.5).send(url, {}, b"{}")
    assert not reply.delivered
    assert reply.error


def test_refused_connection_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    reply = HttpSender(rules=LOCAL).send(f"http://127.0.0.1:{port}/", {}, b"{}")
    assert (reply.status, reply.delivered) == (None, False)
    assert "ConnectionRefusedError" in str(reply.error)
