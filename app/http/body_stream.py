"""Reads request bodies: with a limit, refused as early as possible, and in memory only if they are small."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from email.message import Message
from typing import Any, Final, TypeAlias

from litestar import Request

from app.http.limits.threads import Threads
from app.infra.files.received_body import BodySpool, StoredBody
from app.kernel.format.errors import BodyTooLarge, InvalidRequest, MalformedBody, UnsupportedMediaType

_AnyRequest: TypeAlias = Request[Any, Any, Any]

JSON: Final = "application/json"
OCTET_STREAM: Final = "application/octet-stream"
# Chunks from the socket are small, so several of them are passed to a thread together.
_CHUNK_BYTES: Final = 1024 * 1024


def media_type_of(request: _AnyRequest) -> str:
    """The Content-Type without its parameters, in lower case; empty if there is none."""
    header = Message()
    header["Content-Type"] = request.headers.get("content-type", "")
    return header.get_content_type() if "/" in header["Content-Type"] else ""


def require_media_type(request: _AnyRequest, media_types: Sequence[str]) -> None:
    """Raises UnsupportedMediaType unless the body is one of these."""
    if media_type_of(request) not in media_types:
        raise refused_media_type(request, media_types)


def refused_media_type(request: _AnyRequest, media_types: Sequence[str]) -> UnsupportedMediaType:
    """The error for a Content-Type that is absent or not read here."""
    content_type = request.headers.get("content-type")
    problem = (
        "a Content-Type is required" if not content_type else f"Content-Type {content_type} is not read here"
    )
    return UnsupportedMediaType(
        f"{problem}; send one of {', '.join(media_types)}", accepted=list(media_types)
    )


def is_gzip(request: _AnyRequest) -> bool:
    """Whether Content-Encoding says gzip. Raises UnsupportedMediaType for any other encoding."""
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding in {"gzip", "x-gzip"}:
        return True
    if encoding in {"identity", ""}:
        return False
    raise UnsupportedMediaType(
        f"Content-Encoding {encoding} is not supported; send gzip or none", accepted=["gzip", "identity"]
    )


def refuse_encoding(request: _AnyRequest) -> None:
    """Raises UnsupportedMediaType if the body is compressed."""
    if is_gzip(request):
        raise UnsupportedMediaType("this body is read without Content-Encoding only", accepted=["identity"])


def refuse_announced(request: _AnyRequest, bytes_max: int) -> None:
    """Raises BodyTooLarge if Content-Length is over the limit, before a byte of the body is read."""
    content_length = request.headers.get("content-length")
    if content_length is None:
        return
    if not content_length.isascii() or not content_length.isdigit():
        raise InvalidRequest(f"Content-Length {content_length!r} is not a number of bytes")
    if int(content_length) > bytes_max:
        raise BodyTooLarge(
            f"the body has {content_length} bytes, over the limit of {bytes_max}", limit_bytes=bytes_max
        )


def announces_body(request: _AnyRequest) -> bool:
    """Whether a request with an optional body has one."""
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


async def read_body(request: _AnyRequest, bytes_max: int) -> bytes:
    """The body, in memory. Raises BodyTooLarge, MalformedBody if it is empty or ends early."""
    refuse_announced(request, bytes_max)
    body = bytearray()
    async for chunk in _chunks(request):
        body += chunk
        if len(body) > bytes_max:
            raise BodyTooLarge(f"the body is over {bytes_max} bytes", limit_bytes=bytes_max)
    if not body:
        raise MalformedBody("the body is empty")
    return bytes(body)


async def spool_body(request: _AnyRequest, spool: BodySpool, threads: Threads) -> bytes | StoredBody:
    """Passes a body of any size on to `spool`; the socket is read no faster than the storage writes.

    Raises BodyTooLarge, StorageFull, MalformedBody if it is empty or ends early.
    """
    async with _closing(spool, threads):
        pending = bytearray()
        async for chunk in _chunks(request):
            pending += chunk
            if len(pending) >= _CHUNK_BYTES:
                await _feed(spool, threads, bytes(pending))
                pending.clear()
        if pending:
            await _feed(spool, threads, bytes(pending))
        return spool.finish() if spool.stays_in_memory() else await threads.run(spool.finish)


async def _feed(spool: BodySpool, threads: Threads, chunk: bytes) -> None:
    # A call in a thread costs more than keeping a small body in memory.
    if spool.stays_in_memory(len(chunk)):
        spool.feed(chunk)
    else:
        await threads.run(spool.feed, chunk)


@asynccontextmanager
async def _closing(spool: BodySpool, threads: Threads) -> AsyncIterator[None]:
    """Leaves the spool, in a thread where that may remove the part that was stored."""
    try:
        yield
    except BaseException as error:
        await threads.run(spool.__exit__, type(error), error, error.__traceback__)
        raise
    if not spool.stays_in_memory():
        await threads.run(spool.__exit__, None, None, None)


async def _chunks(request: _AnyRequest) -> AsyncIterator[bytes]:
    while True:
        event: Any = await request.receive()
        if event["type"] == "http.disconnect":
            raise MalformedBody("the body ended early")
        if chunk := event.get("body", b""):
            yield chunk
        if not event.get("more_body", False):
            return
