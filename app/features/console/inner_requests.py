"""Requests that a handler sends to the service it belongs to, with the credential of its own request.

They pass everything that requests of clients pass: guards, grants, limits of streams, the audit, the access log. So a
page shows what its reader gets from the API, and no more. The rate of requests alone was counted already, for the
request that the handler serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
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
RESPONSE_BYTES_MAX: Final = 4 * 1024 * 1024
"""The largest body that a page reads."""


class ResponseTooLarge(Exception):
    """The body of a response has more bytes than its reader accepts. Nothing of it stays in memory."""


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
    """A response whose body arrives in parts. Its reader closes `body`, which ends the request."""

    status: int
    headers: Mapping[str, str]
    body: AsyncGenerator[bytes, None]


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
    ) -> InnerResponse:
        """The response to a request. `path`: not encoded, unless it is an EncodedPath.

        It may be called for several requests at once. Raises ResponseTooLarge for a body of more than `bytes_max`.
        """
        scope = self._scope(method, path, query, headers or {}, body)
        # In a task: the request sets context variables of its own.
        return await asyncio.create_task(self._answer(scope, body, bytes_max))

    async def stream(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None
    ) -> InnerStream:
        """The response to a request without a body, part by part, no faster than its reader takes them."""
        messages: asyncio.Queue[Message | None] = asyncio.Queue(_PARTS_MAX)
        complete = asyncio.Event()

        async def send(message: Message) -> None:
            await messages.put(message)
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                complete.set()

        async def answer() -> None:
            try:
                await self._service(
                    self._scope(method, path, (), headers or {}, b""), self._until(complete), send
                )
            except Exception:
                await messages.put(None)
                raise
            await messages.put(None)

        request = asyncio.create_task(answer())
        start = await messages.get()
        if start is None or start["type"] != "http.response.start":
            await request
            raise RuntimeError(f"{method} {path} has no response")
        fields = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        return InnerStream(start["status"], fields, _parts(messages, request))

    def _until(self, complete: asyncio.Event) -> Receive:
        """What a request receives after its body: that its client is gone, or that the response is complete."""

        async def gone() -> None:
            while (await self._receive())["type"] != "http.disconnect":
                pass

        async def receive() -> Any:
            waits = [asyncio.ensure_future(gone()), asyncio.ensure_future(complete.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for each in waits:
                    each.cancel()
            return {"type": "http.disconnect"}

        return receive

    async def _answer(self, scope: Any, body: bytes, bytes_max: int) -> InnerResponse:
        pending: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        start: dict[str, Any] = {}
        parts: list[bytes] = []
        size = 0
        complete = asyncio.Event()
        until = self._until(complete)

        async def receive() -> Any:
            return pending.pop() if pending else await until()

        async def send(message: Message) -> None:
            nonlocal size
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                part = message.get("body", b"")
                size += len(part)
                if size > bytes_max:
                    # As if a client had disconnected: a stream ends, and what is sent nevertheless is dropped.
                    parts.clear()
                    complete.set()
                    return
                parts.append(bytes(part))
                if not message.get("more_body", False):
                    complete.set()

        await self._service(scope, receive, send)
        if size > bytes_max:
            raise ResponseTooLarge(f"{scope['method']} {scope['path']}")
        fields = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        return InnerResponse(start["status"], fields, b"".join(parts))

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


async def _parts(
    messages: asyncio.Queue[Message | None], request: asyncio.Task[None]
) -> AsyncGenerator[bytes, None]:
    """The parts of a body. The request ends with the last one, or when the reader closes this."""
    try:
        while (message := await messages.get()) is not None:
            if message["type"] == "http.response.body" and (part := bytes(message.get("body", b""))):
                yield part
        await request
    finally:
        request.cancel()


def encoded_path(path: str) -> str:
    """The path as it is sent."""
    return str(path) if isinstance(path, EncodedPath) else quote(path)
