"""Requests that a handler sends to the service it belongs to, with the credential of its own request.

They pass everything that requests of clients pass: guards, grants, limits of streams, the audit, the access log. So a
page shows what its reader gets from the API, and no more. The rate of requests alone was counted already, for the
request that the handler serves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from litestar.types import ASGIApp, Message, Receive

from app.access.tenants.values import Credential
from app.http.protocols import INNER, SERVICE

_COPIED: Final = ("asgi", "http_version", "scheme", "root_path", "client", "server")
_KEPT_HEADERS: Final = frozenset({b"host", b"user-agent"})


@dataclass(frozen=True, slots=True)
class InnerResponse:
    """The response, with all of its body. The names of `headers` are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def value(self) -> Any:
        """The JSON of the body; None without a body. Raises msgspec.DecodeError."""
        return msgspec.json.decode(self.body) if self.body else None


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
    ) -> InnerResponse:
        """The response to a request. `path`: not encoded. It may be called for several requests at once."""
        # In a task: the request sets context variables of its own.
        return await asyncio.create_task(self._answer(method, path, query, headers or {}, body))

    async def _answer(
        self,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        body: bytes,
    ) -> InnerResponse:
        pending: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]
        start: dict[str, Any] = {}
        parts: list[bytes] = []

        async def receive() -> Any:
            if pending:
                return pending.pop()
            while (event := await self._receive())["type"] != "http.disconnect":
                pass
            return event

        async def send(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.update(message)
            elif message["type"] == "http.response.body":
                parts.append(bytes(message.get("body", b"")))

        await self._service(self._scope(method, path, query, headers, body), receive, send)
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
        return {
            "type": "http",
            **{name: self._outer[name] for name in _COPIED if name in self._outer},
            "method": method,
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": urlencode(query).encode(),
            "headers": fields,
            "state": {},
            INNER: self._credential,
        }
