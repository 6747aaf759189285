"""Bytes of objects, sent in pieces as fast as clients read them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final

from litestar import Response
from litestar.response import Stream

from app.features.objects.ports import ObjectContent
from app.http.limits.threads import Threads
from app.http.limits.unread_bytes import LARGE_BYTES, UnreadBytes
from app.http.response import ApiResponse
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectStreams:
    """Sends objects. `unread`: the pieces that are read and not sent yet, which count apart from other responses."""

    threads: Threads
    unread: UnreadBytes

    async def send(
        self, tenant_id: str, content: ObjectContent, span: range, status: int, headers: Mapping[str, str]
    ) -> Response[bytes] | Stream:
        """The bytes of the span. Raises RateLimited if the tenant does not read what it has requested, CorruptFile."""
        first = await self._piece(tenant_id, content, span, _FIRST_SECONDS_MAX)
        if len(span) <= LARGE_BYTES:
            return ApiResponse(
                first, status_code=status, media_type=content.media_type, headers=dict(headers)
            )
        return Stream(
            self._pieces(tenant_id, content, span, first),
            status_code=status,
            media_type=content.media_type,
            headers=dict(headers),
        )

    async def _pieces(
        self, tenant_id: str, content: ObjectContent, span: range, first: bytes
    ) -> AsyncIterator[bytes]:
        piece, rest = first, span[len(first) :]
        while piece:
            with self.unread.sending(tenant_id, piece):
                for start in range(0, len(piece), LARGE_BYTES):
                    yield piece[start : start + LARGE_BYTES]
            piece = b""
            if rest:
                piece = await self._piece(tenant_id, content, rest, _PIECE_SECONDS_MAX)
                rest = rest[len(piece) :]

    async def _piece(self, tenant_id: str, content: ObjectContent, span: range, seconds: float) -> bytes:
        """The beginning of the span: all of it, or a piece."""
        count = min(len(span), PIECE_BYTES)
        if not count:
            return b""
        async with self.unread.reading(tenant_id, seconds):
            piece = await self.threads.run(content.read, span.start, count)
        if len(piece) != count:
            raise CorruptFile(f"an object has {len(piece)} bytes at {span.start}, not {count}", path="")
        return piece
