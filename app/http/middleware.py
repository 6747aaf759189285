"""What happens to every request before and after its handler.

Request id, security headers, HEAD, access log, audit, unread bodies.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from typing import Any, Final

from litestar import Request
from litestar.types import ASGIApp, Message, Receive, Send

from app.access.tenants.values import Principal
from app.http.audited import AuditedRequests
from app.http.limits.request_limits import RATE_FIELDS
from app.http.limits.unread_bytes import LARGE_BYTES, UnreadBytes
from app.http.problems import REQUEST_ID, on_headwater_error
from app.http.protocols import AS_SENT, INNER, SERVICE, RequestAsSent
from app.http.request import DATASET_NAME, JOB_ID
from app.http.server.connection_limits import WRITABLE
from app.infra.identifiers import new_id
from app.infra.instruments import REQUEST_BEGAN, count_request
from app.infra.logs import facts
from app.kernel.format.errors import HeadwaterError

_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{8,128}")
_HEADER: Final = b"x-request-id"
_OF_RANGES: Final = (b"range", b"if-range")

SECURITY_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Headers of every response. A handler may set its own instead."""
# A year. A client that has once used TLS for the host does not use plain HTTP for it again.
_TLS_ONLY: Final = (b"strict-transport-security", b"max-age=31536000")

_log = logging.getLogger("headwater.access")


def edge(
    app: ASGIApp,
    audited_requests: AuditedRequests,
    unread: UnreadBytes,
    on_end: Callable[[Principal, int], None],
) -> ASGIApp:
    """Wraps the application. Requests of other kinds than HTTP (start and stop) pass unchanged.

    `unread` counts large bodies while they are sent. `on_end`: called after each request of a client with a principal,
    with the bytes of the body that was sent.
    """

    async def serve(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, audited_requests, unread)
        exchange.scope["state"][SERVICE] = serve
        REQUEST_BEGAN.set(exchange.began)
        try:
            if (writable := scope.get(WRITABLE)) is not None:
                # A response is not made before the client has read most of the last one.
                await writable()
            await app(exchange.scope, exchange.receive, exchange.send)
        finally:
            exchange.log()
            audited_requests.ended(exchange.scope, exchange.status)
            # What a page requests within the process is not sent to its reader.
            if INNER not in scope and (principal := exchange.scope.get("user")) is not None:
                on_end(principal, exchange.sent_bytes)

    return serve


class _Exchange:
    """One request and its response."""

    def __init__(
        self, scope: Any, receive: Receive, send: Send, audited_requests: AuditedRequests, unread: UnreadBytes
    ) -> None:
        self._audited_requests = audited_requests
        self._unread_bytes = unread
        self._receive = receive
        self._send = send
        self.began = time.perf_counter()
        self._head_only = scope["method"] == "HEAD"
        self._method = scope["method"]
        headers = dict(scope["headers"])
        request_id = headers.get(_HEADER, b"")
        self._id = request_id if _REQUEST_ID.fullmatch(request_id) else new_id().encode()
        self._unread = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
        tls_only = (_TLS_ONLY,) if scope["scheme"] == "https" else ()
        self._security_headers = (*SECURITY_HEADERS, *tls_only)
        self.status = 0
        self.sent_bytes = 0
        self._refused = False
        original = RequestAsSent(self._method, scope["headers"])
        # HEAD is GET without the body, for every resource alike. A range is defined for GET only.
        method = "GET" if self._head_only else scope["method"]
        if self._head_only:
            scope = {**scope, "headers": [each for each in scope["headers"] if each[0] not in _OF_RANGES]}
        self.scope: Any = {
            **scope,
            "method": method,
            "state": {**scope.get("state", {}), REQUEST_ID: self._id.decode(), AS_SENT: original},
        }

    async def receive(self) -> Any:
        event = await self._receive()
        if event["type"] == "http.disconnect" or not event.get("more_body", False):
            self._unread = False
        return event

    async def send(self, message: Message) -> None:
        if self._refused:
            # The rest of a response that is not sent.
            return
        if message["type"] == "http.response.start":
            try:
                await self._audited_requests.responding(self.scope, message["status"])
            except HeadwaterError as error:
                await self._refuse(error)
            else:
                await self._start(message)
            return
        if message["type"] == "http.response.body":
            if self._head_only:
                return
            body = message.get("body", b"")
            self.sent_bytes += len(body)
            if len(body) > LARGE_BYTES:
                await self._send_in_pieces(message, body)
                return
        await self._send(message)

    async def _send_in_pieces(self, message: Any, body: bytes) -> None:
        """Sends a piece once most of the one before is read, so that it is known whether the client reads."""
        principal: Principal | None = self.scope.get("user")
        with self._unread_bytes.sending("" if principal is None else principal.tenant_id, body):
            pieces = memoryview(body)
            for start in range(0, len(body), LARGE_BYTES):
                last = start + LARGE_BYTES >= len(body)
                piece = pieces[start : start + LARGE_BYTES]
                part: Any = {
                    **message,
                    # The connection keeps the last one for longer, and a view would keep the whole body.
                    "body": bytes(piece) if last else piece,
                    "more_body": message.get("more_body", False) or not last,
                }
                await self._send(part)

    async def _start(self, message: Any) -> None:
        self.status = message["status"]
        rates = self.scope["state"].get(RATE_FIELDS, ())
        headers = [*message.get("headers", ()), (_HEADER, self._id), *rates]
        names = {name.lower() for name, _ in headers}
        headers += [header for header in self._security_headers if header[0] not in names]
        if self._unread:
            # A request that is refused before its body was read need not send the rest.
            headers.append((b"connection", b"close"))
        response_start: Any = {**message, "headers": headers}
        await self._send(response_start)
        if self._head_only:
            # At once: the first piece of a stream may take long, and the connection would be held until then.
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _refuse(self, error: HeadwaterError) -> None:
        """Sends the problem in place of a response whose request cannot be recorded."""
        problem = on_headwater_error(Request(self.scope), error)
        header_fields = {
            "content-type": str(problem.media_type),
            "content-length": str(len(problem.content)),
            **problem.headers,
        }
        headers = [(name.lower().encode(), value.encode()) for name, value in header_fields.items()]
        await self._start({"type": "http.response.start", "status": problem.status_code, "headers": headers})
        await self.send({"type": "http.response.body", "body": problem.content, "more_body": False})
        self._refused = True

    def log(self) -> None:
        """Counts the request, and logs one line without query, headers or body: these may have secrets."""
        seconds = time.perf_counter() - self.began
        count_request(self._method, self.scope.get("path_template"), self.status, seconds)
        state = self.scope["state"]
        principal: Principal | None = self.scope.get("user")
        _log.info(
            "%s %s %d",
            self._method,
            self.scope["path"].encode("unicode_escape").decode("ascii"),
            self.status,
            extra=facts(
                tenant=None if principal is None else principal.tenant_name or principal.tenant_id,
                dataset=state.get(DATASET_NAME),
                job=state.get(JOB_ID),
                milliseconds=seconds * 1000,
                bytes=self.sent_bytes,
                request=self._id.decode(),
            ),
        )
