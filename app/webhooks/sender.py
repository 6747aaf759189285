"""Posting webhook messages: to checked addresses only, within fixed times, and to nowhere that an answer points to."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from app.outbound.addresses import AddressRefused, Rules, Target
from app.outbound.timed_stream import TimedStream, seconds_left
from app.webhooks.values import RefusedUrl, Reply

_CONNECT_SECONDS_MAX: Final = 5.0
_TOTAL_SECONDS_MAX: Final = 15.0
_ANSWER_BYTES_MAX: Final = 64 * 1024
_ERROR_BYTES_MAX: Final = 1024
# Name servers that do not answer hold these up for longer than anybody waits for them.
_RESOLVERS: Final = 32
_USER_AGENT: Final = "Headwater-Webhooks/1"

Resolve = Callable[[str, int], list[str]]


def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host. Raises OSError."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpSender:
    """Sends messages over HTTP. No proxy, no redirect, no cookie: what it connects to is what was checked.

    A host is looked up once an attempt, and the connection is made to an address of that answer; the certificate must
    be the host's all the same. `tls`: how certificates are verified.
    """

    rules: Rules
    resolve: Resolve = resolve
    tls: ssl.SSLContext = field(default_factory=ssl.create_default_context)
    total_seconds_max: float = _TOTAL_SECONDS_MAX
    _resolvers: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(_RESOLVERS, thread_name_prefix="resolver")
    )

    def check(self, url: str) -> None:
        """Raises RefusedUrl if nothing may be sent there, as things are now."""
        try:
            self._addresses(self.rules.target(url), _CONNECT_SECONDS_MAX)
        except (AddressRefused, OSError) as error:
            raise RefusedUrl(str(error)) from None

    def send(self, url: str, headers: dict[str, str], body: bytes) -> Reply:
        """Posts a body. Checks again where the URL leads. A failure of any sort is a reply without success."""
        started = time.monotonic()
        deadline = started + self.total_seconds_max
        try:
            answer = self._post(self.rules.target(url), headers, body, deadline)
        except AddressRefused as error:
            return Reply(status=None, error=str(error), seconds=time.monotonic() - started)
        except (OSError, http.client.HTTPException, ValueError) as error:
            error_text = f"{type(error).__name__}: {error}"
            return Reply(
                status=None, error=_printable(error_text.encode()), seconds=time.monotonic() - started
            )
        return Reply(
            status=answer.status,
            error=_fault(answer),
            seconds=time.monotonic() - started,
            retry_after_seconds=_retry_after(answer.retry_after),
        )

    def _post(self, target: Target, headers: dict[str, str], body: bytes, deadline: float) -> _Answer:
        addresses = self._addresses(target, seconds_left(deadline, _CONNECT_SECONDS_MAX))
        connection = http.client.HTTPConnection(target.host, target.port)
        if target.scheme == "https":
            # Determines whether the header Host contains the port.
            connection.default_port = http.client.HTTPS_PORT
        stream = self._connect(target, addresses, deadline)
        try:
            connection.sock = TimedStream(stream, deadline)
            connection.request("POST", target.path, body, {**headers, "User-Agent": _USER_AGENT})
            response = connection.getresponse()
            return _Answer(
                status=response.status,
                retry_after=response.headers.get("retry-after"),
                content=_content(response),
            )
        finally:
            connection.close()
            stream.close()

    def _addresses(self, target: Target, seconds: float) -> list[str]:
        lookup = self._resolvers.submit(self.resolve, target.host, target.port)
        try:
            found = lookup.result(timeout=seconds)
        except TimeoutError:
            raise TimeoutError(f"{target.host} could not be looked up in {seconds:.0f} s") from None
        except (OSError, UnicodeError):
            raise AddressRefused(f"{target.host} could not be looked up") from None
        return self.rules.check(target, found)

    def _connect(self, target: Target, addresses: list[str], deadline: float) -> socket.socket:
        """A connection to the first of the addresses that takes one, encrypted if the URL says so. Raises OSError."""
        connected_by = time.monotonic() + seconds_left(deadline, _CONNECT_SECONDS_MAX)
        plain = None
        for address in addresses:
            try:
                plain = socket.create_connection((address, target.port), seconds_left(connected_by))
                break
            except OSError:
                if address == addresses[-1]:
                    raise
        assert plain is not None
        # Head and body are two writes: the second must not wait until the first is acknowledged.
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if target.scheme == "http":
            return plain
        try:
            plain.settimeout(seconds_left(connected_by))
            return self.tls.wrap_socket(plain, server_hostname=target.host)
        except BaseException:
            plain.close()
            raise


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    status: int
    retry_after: str | None
    content: bytes


def _fault(answer: _Answer) -> str | None:
    """What was wrong, in the receiver's words if it has any."""
    if 200 <= answer.status < 300:
        return None
    if 300 <= answer.status < 400:
        return "redirects are not followed; give the webhook the URL that this one leads to"
    return _printable(answer.content) or http.client.responses.get(answer.status, "")


def _content(response: http.client.HTTPResponse) -> bytes:
    """What is kept of the answer's body. The status counts, even if the body breaks off."""
    try:
        return response.read(_ANSWER_BYTES_MAX)[:_ERROR_BYTES_MAX]
    except (OSError, http.client.HTTPException, ValueError):
        return b""


def _printable(text: bytes) -> str:
    # Postgres keeps no NUL in a text.
    return text[:_ERROR_BYTES_MAX].decode(errors="replace").replace("\0", "\N{REPLACEMENT CHARACTER}")


def _retry_after(text: str | None) -> float | None:
    """The seconds of a Retry-After, which is a number or a date."""
    if text is None:
        return None
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        # Not a date, or one whose time zone takes it out of the calendar.
        return None
