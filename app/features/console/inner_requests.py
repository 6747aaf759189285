"""Requests that a handler sends to the service it belongs to, with the credential of its own request.

They pass everything that requests of clients pass: guards, grants, limits of streams, the audit, the access log. So a
page shows what its reader gets from the API, and no more. The rate of requests alone was counted already, for the
request that the handler serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, unquote, urlencode

import msgspec
from litestar.types import ASGIApp, Message, Receive

from app.access.tenants.values import Credential
from app.http.protocols import INNER, SERVICE

_COPIED: Final = ("asgi", "http_version", "scheme", "root_path", "client", "server")
_KEPT_HEADERS: Final = frozenset({b"host", b"user-agent"})
_PARTS_MAX: Final = 2
"""The most parts of a streamed body that wait for the reader: the handler that sends them waits for more room."""
_PART_SECONDS_MAX: Final = 60.0
"""How long a stream may send nothing while its reader waits. How slow a reader may be, the connection bounds."""
_END_SECONDS_MAX: Final = 5.0
"""How long a request that is ended early is waited for."""
RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest body that a page reads."""
RESPONSE_SECONDS_MAX: Final = 120.0
"""How long a page waits for a response: longer than any request of the API waits for what it is about."""


class ResponseTooLarge(Exception):
    """The body of a response has more bytes than its reader accepts. Nothing of it stays in memory."""


class ResponseTooSlow(Exception):
    """A response, or a part of one, has not come in time. The request is ended, and may have had its effect."""


class EncodedPath(str):
    """A path whose segments are percent-encoded already."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class InnerResponse:
    """The response, with all of its body. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def value(self) -> Any:
        """The JSON of the body; None without a body. Raises msgspec.DecodeError."""
        return msgspec.json.decode(self.body) if self.body else None


@dataclass(frozen=True, slots=True)
class InnerStream:
    """A response whose body arrives in parts. Its reader closes `body`, which ends the request.

    Reading `body` raises ResponseTooLarge, ResponseTooSlow.
    """

    status: int
    headers: Mapping[str, str]
    body: AsyncGenerator[bytes, None]

    async def whole(self) -> InnerResponse:
        """The response with all of its body. Raises ResponseTooLarge, ResponseTooSlow."""
        async with aclosing(self.body) as parts:
            return InnerResponse(self.status, self.headers, b"".join([part async for part in parts]))


class InnerRequests:
    """Sends requests with the credential, while a handler serves a request: `scope` and `receive` are those of that.

    A request that waits ends when the client of the outer one is gone.
    """

    def __init__(self, scope: Any, receive: Receive, credential: Credential) -> None:
        self._outer = scope
        self._receive = receive
        self._credential = credential
        self._service: ASGIApp = scope["state"][SERVICE]

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        bytes_max: int = RESPONSE_BYTES_MAX,
        seconds_max: float = RESPONSE_SECONDS_MAX,
    ) -> InnerResponse:
        """The response to a request. `path`: not encoded, unless it is an EncodedPath.

        It may be called for several requests at once. Raises ResponseTooLarge for a body of more than `bytes_max`, and
        ResponseTooSlow if it is not complete after `seconds_max`.
        """
        try:
            async with asyncio.timeout(seconds_max):
                stream = await self.stream(
                    method,
                    path,
                    query=query,
                    headers=headers,
                    body=body,
                    bytes_max=bytes_max,
                    part_seconds_max=seconds_max,
                )
                return await stream.whole()
        except TimeoutError:
            raise ResponseTooSlow(f"{method} {path}") from None

    async def stream(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        bytes_max: int,
        part_seconds_max: float = _PART_SECONDS_MAX,
    ) -> InnerStream:
        """The response to a request, part by part, no faster than its reader takes them. See `send`.

        The body has at most `bytes_max`, and its reader waits at most `part_seconds_max` for each part. Raises
        ResponseTooLarge for a body that is announced as larger, ResponseTooSlow if no response begins in time.
        """
        exchange = _Exchange(f"{method} {path}", body, self._client_gone, bytes_max, part_seconds_max)
        scope = self._scope(method, path, query, headers or {}, body)
        # In a task: the request sets context variables of its own.
        request = asyncio.create_task(exchange.serve(self._service, scope))
        try:
            start = await exchange.start(request)
        except BaseException:
            await _end(request)
            raise
        fields = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        if int(fields.get("content-length", "0")) > bytes_max:
            await _end(request)
            raise ResponseTooLarge(f"{method} {path}")
        return InnerStream(start["status"], fields, exchange.parts(request))

    async def _client_gone(self) -> None:
        """Returns when the client of the outer request is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    def _scope(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> Any:
        fields = [each for each in self._outer["headers"] if each[0] in _KEPT_HEADERS]
        fields += [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        if body:
            fields += [(b"content-length", str(len(body)).encode())]
            if "content-type" not in {name.lower() for name in headers}:
                fields += [(b"content-type", b"application/json")]
        target = encoded_path(path)
        return {
            "type": "http",
            **{name: self._outer[name] for name in _COPIED if name in self._outer},
            "method": method,
            "path": unquote(target),
            "raw_path": target.encode(),
            "query_string": urlencode(query).encode(),
            "headers": fields,
            "state": {},
            INNER: self._credential,
        }


class _Exchange:
    """A request within the process, and its response on the way to the reader."""

    def __init__(
        self,
        name: str,
        body: bytes,
        client_gone: Callable[[], Awaitable[None]],
        bytes_max: int,
        part_seconds_max: float,
    ) -> None:
        self._name = name
        self._pending: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        self._client_gone = client_gone
        self._bytes_max = bytes_max
        self._part_seconds_max = part_seconds_max
        self._messages: asyncio.Queue[Message | None] = asyncio.Queue(_PARTS_MAX)
        self._complete = asyncio.Event()

    async def serve(self, service: ASGIApp, scope: Any) -> None:
        """Has the service respond. The reader gets None after its last message, also if it fails."""
        try:
            await service(scope, self._receive, self._send)
        except Exception:
            await self._messages.put(None)
            raise
        await self._messages.put(None)

    async def start(self, request: asyncio.Task[None]) -> Any:
        """The beginning of the response. Raises ResponseTooSlow, and what the service raises."""
        message: Any = await self._next()
        if message is None or message["type"] != "http.response.start":
            await request
            raise RuntimeError(f"{self._name} has no response")
        return message

    async def parts(self, request: asyncio.Task[None]) -> AsyncGenerator[bytes, None]:
        """The parts of the body. The request ends with the last one, or when the reader closes this."""
        size = 0
        try:
            while (message := await self._next()) is not None:
                if message["type"] == "http.response.body" and (part := bytes(message.get("body", b""))):
                    size += len(part)
                    if size > self._bytes_max:
                        raise ResponseTooLarge(self._name)
                    yield part
            await request
        finally:
            await _end(request)

    async def _next(self) -> Message | None:
        try:
            async with asyncio.timeout(self._part_seconds_max):
                return await self._messages.get()
        except TimeoutError:
            raise ResponseTooSlow(self._name) from None

    async def _receive(self) -> Any:
        """The body; after it, that the client of the outer request is gone, or that the response is complete."""
        if self._pending:
            return self._pending.pop()
        waits = [asyncio.ensure_future(self._client_gone()), asyncio.ensure_future(self._complete.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()
        return {"type": "http.disconnect"}

    async def _send(self, message: Message) -> None:
        await self._messages.put(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            self._complete.set()


async def _end(request: asyncio.Task[None]) -> None:
    """Ends a request as that of a client that has gone."""
    if not request.done():
        request.cancel()
        await asyncio.wait((request,), timeout=_END_SECONDS_MAX)


def encoded_path(path: str) -> str:
    """The path as it is sent."""
    return str(path) if isinstance(path, EncodedPath) else quote(path)
