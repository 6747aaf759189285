"""uvicorn's HTTP protocol with bounds on what a peer may send, and for how long it may wait.

The parser itself has no bounds: it collects a header of any size, byte by byte. Data is therefore passed to it in
pieces, and what it collects is counted. Requests that are sent before the response of an earlier one wait unparsed, and
begin in turns with those of other connections. `check` ends connections whose peer makes no progress. The server calls
it about once per second, so a request needs no timers of its own.
"""

from __future__ import annotations

import asyncio
import logging
from enum import Enum
from typing import Any, Final

import httptools
import msgspec
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.http.errors import HeadersTooLarge, MalformedRequest, RequestTimeout, UrlTooLong
from app.http.middleware import SECURITY_HEADERS
from app.http.problems import PROBLEM_JSON, document, retry_after, status_of
from app.http.server.connection_limits import (
    DISCARDED_BYTES_MAX,
    DISCONNECTED,
    HEADERS_MAX,
    KIBIBYTE,
    LINGER_SECONDS,
    PROGRESS_BYTES_MIN,
    URL_BYTES_MAX,
    WRITABLE,
    ConnectionLimits,
)
from app.http.server.connections import Connections
from app.http.server.turns import Turns
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from app.kernel.format.errors import HeadwaterError

_PIECE_BYTES: Final = 16 * KIBIBYTE
# What separates a header's name from its value, and its line from the next.
_HEADER_SEPARATORS: Final = 4
_EMPTY_LINE: Final = b"\r\n\r\n"

_log = logging.getLogger("headwater.access")


class _Phase(Enum):
    """What the peer sends next."""

    HEAD = "head"
    BODY = "body"
    NOTHING = "nothing"
    """The last request was received completely."""
    REFUSED = "refused"
    """What follows a request that was refused, read only so that the client gets the refusal."""


class _Wait(Enum):
    """What the peer must do before the connection can continue."""

    SEND_HEAD = "send the headers"
    SEND_BODY = "send the body"
    READ_RESPONSE = "read the response"
    CLOSE = "close"


class BoundedHttp(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ConnectionLimits,
        connections: Connections,
        turns: Turns,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._admission = connections
        self._turns = turns
        self._address: str | None = None
        # What runs. `cycle` is the request that came last, which may still wait.
        self._running: RequestResponseCycle | None = None
        self._lingers = False
        self._phase = _Phase.HEAD
        self._requests = 0
        self._head_bytes = 0
        self._body_bytes = 0
        # Of the body with a Content-Length that is being received.
        self._body_left_bytes = 0
        # What was received last, and how much of it is parsed.
        self._received = b""
        self._parsed_bytes = 0
        # Received since the parser last completed a head, a piece of a body or a message.
        self._collected_bytes = 0
        self._completed = False
        self._discarded_bytes = 0
        self._refusal: HeadwaterError | None = None
        # Progress as `check` saw it.
        self._wait: tuple[_Wait, int] | None = None
        self._waiting_since = 0.0
        self._moved_bytes = 0
        self._unsent_bytes = 0
        self._sent_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        address = self.client[0] if self.client else ""
        if self._admission.admit(address):
            self._address = address
        else:
            self._refuse(Unavailable("the service has as many connections as it accepts"))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._address is not None:
            self._admission.release(self._address)
            self._address = None
        if self._lingers:
            self._admission.end_linger()
            self._lingers = False
        # The requests behind the one that runs are not answered.
        self.pipeline.clear()
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def _is_disconnected(self) -> bool:
        """Whether the client of the request that runs has gone."""
        return self._running is not None and self._running.disconnected

    def shutdown(self) -> None:
        if self._phase is _Phase.REFUSED:
            self.transport.close()
        else:
            super().shutdown()

    def data_received(self, data: bytes) -> None:
        if self._phase is _Phase.REFUSED:
            self._discarded_bytes += len(data)
            if self._discarded_bytes > DISCARDED_BYTES_MAX:
                self.transport.abort()
            return
        self._received = self._received[self._parsed_bytes :] + data
        self._parsed_bytes = 0
        self._parse()

    def _parse(self) -> None:
        """Parses what was received, up to a request that comes before the response of an earlier one."""
        self._unset_keepalive_if_required()
        while self._has_unparsed() and not self._waits_for_response():
            if self._phase is _Phase.REFUSED or self.transport.is_closing():
                return
            piece = memoryview(self._received)[self._parsed_bytes : self._piece_end()]
            self._parsed_bytes += self._feed(piece)
        if self._has_unparsed():
            self.flow.pause_reading()
        else:
            self._received, self._parsed_bytes = b"", 0

    def _has_unparsed(self) -> bool:
        return self._parsed_bytes < len(self._received)

    def _waits_for_response(self) -> bool:
        """Whether the last request was received completely, and has no complete response yet."""
        return self._phase is _Phase.NOTHING and self.cycle is not None and not self.cycle.response_complete

    def _piece_end(self) -> int:
        """Where the next piece ends, which has the end of one request at most, or of two at a cut in an empty line."""
        end = self._parsed_bytes + _PIECE_BYTES
        if self._phase is _Phase.BODY and self._body_left_bytes > 0:
            return min(end, self._parsed_bytes + self._body_left_bytes)
        # A head, and a body in chunks, end with an empty line.
        empty_line = self._received.find(_EMPTY_LINE, self._parsed_bytes, end)
        return end if empty_line < 0 else empty_line + len(_EMPTY_LINE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._has_unparsed() and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            self.flow.pause_reading()
            self._turns.wait(self._go_on)

    def _go_on(self) -> None:
        """Parses the next request, which was received before the response of an earlier one."""
        self.flow.resume_reading()
        self._parse()

    def _feed(self, piece: memoryview) -> int:
        """Parses the piece, and returns how much of it was parsed: at least one byte."""
        if self._phase is _Phase.NOTHING:
            self._phase = _Phase.HEAD
        self._completed = False
        try:
            self.parser.feed_data(piece)
        except httptools.HttpParserUpgrade as upgrade:
            self._stay_in_http()
            parsed_bytes: int = upgrade.args[0]
            return parsed_bytes
        except httptools.HttpParserError as error:
            self._refuse(self._refusal or MalformedRequest(_cause(error)))
        else:
            self._collected_bytes = 0 if self._completed else self._collected_bytes + len(piece)
            if self._collected_bytes > self._limits.header_bytes_max:
                self._refuse(self._headers_too_large())
        return len(piece)

    def _stay_in_http(self) -> None:
        """Passes the head that was parsed last to a new parser, without `Upgrade`: the service ignores this header.

        The parser takes a request with it for one without a body, and what follows for another protocol.
        """
        method = self.parser.get_method()
        if method == b"CONNECT":
            self._refuse(
                MalformedRequest("the method CONNECT is for proxies: send requests to the service itself")
            )
            return
        version = self.parser.get_http_version().encode()
        headers = [b"%s: %s\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        head = b"".join([b"%s %s HTTP/%s\r\n" % (method, self.url, version), *headers, b"\r\n"])
        self.parser = httptools.HttpRequestParser(self)
        # As the first one: bytes behind the last request of a connection are no error.
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._feed(memoryview(head))

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase = _Phase.HEAD
        self._head_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._head_bytes += len(url)
        if len(self.url) > URL_BYTES_MAX:
            self._refusal = UrlTooLong(
                f"the URL has more than {URL_BYTES_MAX} bytes", limit_bytes=URL_BYTES_MAX
            )
            raise self._refusal

    def on_header(self, name: bytes, value: bytes) -> None:
        # A header behind the body (a trailer) is not a header of the request.
        if self._phase is not _Phase.HEAD:
            return
        super().on_header(name, value)
        self._head_bytes += len(name) + len(value) + _HEADER_SEPARATORS
        if self._head_bytes > self._limits.header_bytes_max:
            self._refusal = self._headers_too_large()
        elif len(self.headers) > HEADERS_MAX:
            self._refusal = HeadersTooLarge(
                f"the request has more than {HEADERS_MAX} headers", limit_headers=HEADERS_MAX
            )
        if self._refusal is not None:
            raise self._refusal

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            # `_feed` passes the head to the parser once more.
            return
        if [name for name, _ in self.headers].count(b"host") > 1:
            # RFC 9112 requires the refusal: a proxy may route, and a client may sign, by another line than we read.
            self._refusal = MalformedRequest("the request has more than one header Host")
            raise self._refusal
        self.scope[WRITABLE] = self.flow.drain  # type: ignore[typeddict-unknown-key]
        self.scope[DISCONNECTED] = self._is_disconnected  # type: ignore[typeddict-unknown-key]
        super().on_headers_complete()
        self._phase = _Phase.BODY
        self._body_left_bytes = next(
            (int(value) for name, value in self.headers if name == b"content-length"), 0
        )
        self._requests += 1
        self._completed = True

    def on_body(self, body: bytes) -> None:
        super().on_body(body)
        self._body_bytes += len(body)
        self._body_left_bytes -= len(body)
        self._completed = True

    def on_message_complete(self) -> None:
        if self.parser.should_upgrade():
            return
        super().on_message_complete()
        self._phase = _Phase.NOTHING
        self._completed = True

    def resume_writing(self) -> None:
        super().resume_writing()
        self._sent_bytes += PROGRESS_BYTES_MIN

    def check(self, now: float) -> None:
        """Ends the connection if its peer has made no progress for too long. `now` is a time of the event loop."""
        wait = self._current_wait()
        progress_bytes = self._sent_bytes + self._body_bytes
        if wait != self._wait or progress_bytes - self._moved_bytes >= PROGRESS_BYTES_MIN:
            self._wait, self._waiting_since, self._moved_bytes = wait, now, progress_bytes
        elif wait is not None and now - self._waiting_since >= self._seconds_of(wait[0]):
            self._end(wait[0])

    def _current_wait(self) -> tuple[_Wait, int] | None:
        """What the peer must do now, and for which request."""
        buffer_bytes = self.transport.get_write_buffer_size()
        self._sent_bytes += max(self._unsent_bytes - buffer_bytes, 0)
        self._unsent_bytes = buffer_bytes
        if buffer_bytes or self.flow.write_paused:
            return _Wait.READ_RESPONSE, 0
        if self._phase is _Phase.REFUSED:
            return _Wait.CLOSE, 0
        if not self.flow.read_paused:
            if self._phase is _Phase.HEAD:
                return _Wait.SEND_HEAD, self._requests
            if self._phase is _Phase.BODY:
                return _Wait.SEND_BODY, self._requests
        return None

    def _seconds_of(self, wait: _Wait) -> float:
        match wait:
            case _Wait.SEND_HEAD:
                return self._limits.header_seconds
            case _Wait.SEND_BODY:
                return self._limits.request_stall_seconds
            case _Wait.READ_RESPONSE:
                return self._limits.response_stall_seconds
            case _Wait.CLOSE:
                return LINGER_SECONDS

    def _end(self, wait: _Wait) -> None:
        if wait is _Wait.READ_RESPONSE:
            _log.info("response aborted: the client stopped reading")
            self.transport.abort()
        elif wait is _Wait.CLOSE:
            self.transport.abort()
        elif wait is _Wait.SEND_HEAD and not self._collected_bytes:
            self.transport.close()
        else:
            seconds = self._seconds_of(wait)
            self._refuse(
                RequestTimeout(f"the client did not {wait.value} within {seconds:g} s", seconds=seconds)
            )

    def _headers_too_large(self) -> HeadersTooLarge:
        limit = self._limits.header_bytes_max
        return HeadersTooLarge(f"the headers have more than {limit} bytes", limit_bytes=limit)

    def _refuse(self, error: HeadwaterError) -> None:
        """Answers with a problem document, and closes the connection.

        If an earlier response is not complete, the connection is closed without one more: it could not be recognized.
        """
        body_phase, self._phase = self._phase is _Phase.BODY, _Phase.REFUSED
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if cycle.response_started or self.pipeline or not body_phase:
                self.transport.close()
                return
            cycle.disconnected = True
            cycle.message_event.set()
        self.transport.write(_response(error, self.server_state.default_headers))
        # Closed at once, the connection would be reset, and its client might not get the response.
        if self.transport.can_write_eof() and self._admission.linger():
            self._lingers = True
            self.flow.resume_reading()
            self.transport.write_eof()
        else:
            self.transport.close()


def _cause(error: httptools.HttpParserError) -> str:
    if isinstance(error, httptools.HttpParserInvalidMethodError):
        return "the request line does not begin with a method of HTTP"
    return "the first line, the headers or the framing of the body cannot be parsed"


def _response(error: HeadwaterError, default_headers: list[tuple[bytes, bytes]]) -> bytes:
    request_id = new_id()
    status = status_of(error.code)
    body = msgspec.json.encode(document(error.code, error.title, error.detail, error.facts)) + b"\n"
    headers = [
        *default_headers,
        (b"content-type", PROBLEM_JSON.encode()),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
        (b"x-request-id", request_id.encode()),
        *SECURITY_HEADERS,
    ]
    if seconds := retry_after(error.code):
        headers.append((b"retry-after", str(seconds).encode()))
    _log.info("refused %d %s %s", status, error.code, request_id)
    return b"".join([STATUS_LINE[status], *(b"%s: %s\r\n" % header for header in headers), b"\r\n", body])
