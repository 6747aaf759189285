"""Bytes of objects, sent in pieces as fast as clients read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from litestar.types import Receive, Scope, Send

from app.features.objects.handlers.lookups import ObjectLookup
from app.features.objects.ports import ObjectContent
from app.http.limits.threads import Threads
from app.http.limits.unread_bytes import LARGE_BYTES, UnreadBytes
from app.http.server.connection_limits import DISCONNECTED
from app.infra.files.errors import CorruptFile

PIECE_BYTES: Final = 1024 * 1024
OBJECT_THREADS_MAX: Final = 16
"""Threads that find and read objects: a slow storage does not occupy those of other requests."""
OBJECT_THREADS_TENANT_MAX: Final = 8
OBJECT_UNREAD_BYTES_MAX: Final = 64 * PIECE_BYTES
"""The bytes of objects that are in memory for a tenant and not sent yet, in an API process."""
# For how long the next piece waits until the tenant has read others: longer than a client may read nothing.
_PIECE_SECONDS_MAX: Final = 120.0
_FIRST_SECONDS_MAX: Final = 10.0

Piece: TypeAlias = bytes | bytearray


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectStreams:
    """Reads objects. `unread`: the pieces that are read and not sent yet, which count apart from other responses."""

    threads: Threads
    unread: UnreadBytes

    async def response(
        self, status: int, fields: Sequence[tuple[bytes, bytes]], lookup: ObjectLookup, span: range
    ) -> ObjectResponse:
        """The bytes of the span. Raises RateLimited if the tenant does not read what it has requested, CorruptFile."""
        tenant_id, content = lookup.dataset.tenant_id, lookup.content
        first = await self.piece(tenant_id, content, span, _FIRST_SECONDS_MAX)
        large = None if len(span) <= LARGE_BYTES else LargeObject(self, tenant_id, content, span)
        return ObjectResponse(status, fields, first, large)

    async def piece(self, tenant_id: str, content: ObjectContent, span: range, seconds: float) -> Piece:
        """The beginning of the span: all of it, or a piece. What is in memory is read on the event loop, in pieces as
        they are sent; a larger piece is read in a thread.
        """
        if not span:
            return b""
        async with self.unread.reading(tenant_id, seconds):
            count = min(len(span), LARGE_BYTES)
            piece = content.read_in_memory(span.start, count)
            if piece is None:
                count = min(len(span), PIECE_BYTES)
                piece = await self.threads.run(content.read, span.start, count)
        if len(piece) != count:
            raise CorruptFile(f"an object has {len(piece)} bytes at {span.start}, not {count}", path="")
        return piece


class LargeObject(NamedTuple):
    """A span of an object that is sent in pieces."""

    streams: ObjectStreams
    tenant_id: str
    content: ObjectContent
    span: range

    async def send(self, piece: Piece, send: Send, disconnected: Callable[[], bool]) -> None:
        """Sends the span, of which `piece` is the beginning. Reads the next piece when most of the one before is sent,
        and none for a client that has gone.
        """
        rest = self.span[len(piece) :]
        while not disconnected():
            with self.streams.unread.sending(self.tenant_id, piece):
                for start in range(0, len(piece), LARGE_BYTES):
                    end = start + LARGE_BYTES
                    part = piece if len(piece) <= LARGE_BYTES else memoryview(piece)[start:end]
                    body: Any = {
                        "type": "http.response.body",
                        "body": part,
                        "more_body": bool(rest) or end < len(piece),
                    }
                    await send(body)
            if not rest:
                return
            piece = await self.streams.piece(self.tenant_id, self.content, rest, _PIECE_SECONDS_MAX)
            rest = rest[len(piece) :]


class ObjectResponse:
    """A response with an object, a part of it, or its fields only. `body`: the first piece of `large`, if there is."""

    def __init__(
        self,
        status: int,
        fields: Sequence[tuple[bytes, bytes]],
        body: Piece = b"",
        large: LargeObject | None = None,
    ) -> None:
        self._status = status
        self._fields = fields
        self._body = body
        self._large = large

    async def __call__(self, scope: Scope, _: Receive, send: Send) -> None:
        """Sends the response."""
        start: Any = {"type": "http.response.start", "status": self._status, "headers": self._fields}
        await send(start)
        if self._large is None:
            body: Any = {"type": "http.response.body", "body": self._body, "more_body": False}
            await send(body)
        else:
            members: Any = scope
            await self._large.send(self._body, send, members.get(DISCONNECTED, _never))


def _never() -> bool:
    return False
