"""Content-Encoding: gzip, decompressed step by step."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from app.codecs.faults import malformed
from app.format.errors import BodyTooLarge, MalformedBody

_STEP_BYTES: Final = 1 << 20
# What follows a member is copied, so small windows keep a body of tiny members from costing its square.
_WINDOW_BYTES: Final = 16 << 10
_SMALL_MEMBERS_MAX: Final = 1_000
_MEMBER_BYTES_MIN: Final = 64
_GZIP: Final = 16 + zlib.MAX_WBITS


def gunzip_stream(chunks: Iterator[bytes], *, expanded_bytes_max: int) -> Iterator[bytes]:
    """Decompresses gzip members, one after another, in steps of at most 1 MiB.

    Raises MalformedBody for what is truncated, corrupt, or followed by something else, and BodyTooLarge (fact
    `limit_bytes`) once the expanded bytes pass `expanded_bytes_max`: only the end says that all was well.
    """
    expanded = 0
    for piece in _pieces(chunks):
        expanded += len(piece)
        if expanded > expanded_bytes_max:
            raise BodyTooLarge(
                f"the body expands to more than {expanded_bytes_max} bytes", limit_bytes=expanded_bytes_max
            )
        yield piece


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    member = None
    members = consumed = 0
    for window in _windows(chunks):
        consumed += len(window)
        rest = window
        while rest:
            if member is None:
                members += 1
                if members > _SMALL_MEMBERS_MAX and members * _MEMBER_BYTES_MIN > consumed:
                    raise MalformedBody("the gzip body consists of too many tiny members")
                member = zlib.decompressobj(_GZIP)
            yield from _inflated(member, rest, members)
            rest = member.unused_data
            if member.eof:
                member = None
    if members == 0:
        raise MalformedBody("the body is empty")
    if member is not None:
        raise MalformedBody("the gzip body is truncated")


def _windows(chunks: Iterator[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), _WINDOW_BYTES):
            yield chunk[start : start + _WINDOW_BYTES]


def _reason(fault: str, number: int) -> str:
    if "header" not in fault:
        return "the gzip body is corrupt"
    return "the body is not gzip" if number == 1 else "bytes that are no gzip follow the gzip body"


def _inflated(member: zlib._Decompress, compressed: bytes, number: int) -> Iterator[bytes]:
    while True:
        try:
            piece = member.decompress(compressed, _STEP_BYTES)
        except zlib.error as fault:
            raise malformed(_reason(str(fault), number), fault) from None
        if piece:
            yield piece
        compressed = member.unconsumed_tail
        # A full step may leave output inside zlib even where it took all of its input.
        if member.eof or (not compressed and len(piece) < _STEP_BYTES):
            return
