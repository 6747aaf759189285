"""JSON from an issuer: encrypted and verified where the URL says so, and in a bounded time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.access.oidc.download import download
from app.infra.runtime.loopback import LOOPBACK

CERTIFICATES = Path(__file__).parents[2] / "features" / "webhooks" / "certificates"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"


@contextmanager
def answering(answer: bytes, *, tls: ssl.SSLContext | None = None, pause_seconds: float = 0) -> Iterator[int]:
    """The port of a server that answers once, byte by byte if there are to be pauses."""

    def serve() -> None:
        connection, _ = listening.accept()
        with connection:
            try:
                with connection if tls is None else tls.wrap_socket(connection, server_side=True) as stream:
                    stream.recv(65_536)
                    step = 1 if pause_seconds else len(answer)
                    for at in range(0, len(answer), step):
                        stream.sendall(answer[at : at + step])
                        time.sleep(pause_seconds)
            except OSError:
                # The client has closed the connection.
                pass

    with socket.create_server((LOOPBACK, 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_answer_that_trickles_ends_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.access.oidc.download.TOTAL_SECONDS_MAX", 0.3)
    with answering(ANSWER * 100, pause_seconds=0.02) as port, pytest.raises(TimeoutError):
        download(f"http://{LOOPBACK}:{port}/keys")


def test_certificate_of_an_issuer_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "app.access.oidc.download.socket.getaddrinfo",
        lambda _, port, *more, **options: [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (LOOPBACK, port))],
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "receiver.pem")
    with answering(ANSWER, tls=context) as port, pytest.raises(ssl.SSLCertVerificationError):
        download(f"https://receiver.example:{port}/keys")
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATES / "authority.pem"))
    with answering(ANSWER, tls=context) as port:
        assert download(f"https://receiver.example:{port}/keys") == []
    with answering(ANSWER, tls=context) as port, pytest.raises(ssl.SSLCertVerificationError):
        download(f"https://another.example:{port}/keys")
