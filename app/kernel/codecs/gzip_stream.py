"""Content-Encoding: gzip, decompressed step by step."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from app.kernel.codecs.faults import malformed
from app.kernel.format.errors import BodyTooLarge, MalformedBody

_STEP_BYTES: Final = 1 << 20
# The data after a member are copied, so small windows prevent quadratic time for a body of tiny members.
_WINDOW_BYTES: Final = 16 << 10
_SMALL_MEMBERS_MAX: Final = 1_000
_MEMBER_BYTES_MIN: Final = 64
_GZIP: Final = 16 + zlib.MAX_WBITS


def gunzip_stream(chunks: Iterator[bytes], *, expanded_bytes_max: int) -> Iterator[bytes]:
    """Decompresses gzip members, one after another, in steps of at most 1 MiB.

    Raises MalformedBody for a body that is truncated, corrupt, or followed by other bytes, and BodyTooLarge (fact
    `limit_bytes`) once the expanded bytes exceed `expanded_bytes_max`. The body is only known to be valid at its end.
    """
    total_bytes = 0
    for piece in _pieces(chunks):
        total_bytes += len(piece)
        if total_bytes > expanded_bytes_max:
            raise BodyTooLarge(
                f"the body expands to more than {expanded_bytes_max} bytes", limit_bytes=expanded_bytes_max
            )
        yield piece


def _pieces(chunks: Iterator[bytes]) -> Iterator[bytes]:
    member = None
    members = input_bytes = 0
    for window in _windows(chunks):
        input_bytes += len(window)
        rest = window
        while rest:
            if member is None:
                members += 1
                if members > _SMALL_MEMBERS_MAX and members * _MEMBER_BYTES_MIN > input_bytes:
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
    return "the body is not gzip" if number == 1 else "the gzip body is followed by bytes that are not gzip"


def _inflated(member: zlib._Decompress, rest: bytes, number: int) -> Iterator[bytes]:
    while True:
        try:
            piece = member.decompress(rest, _STEP_BYTES)
        except zlib.error as fault:
            raise malformed(_reason(str(fault), number), fault) from None
        if piece:
            yield piece
        rest = member.unconsumed_tail
        # A full step may leave output inside zlib even if it consumed all of its input.
        if member.eof or (not rest and len(piece) < _STEP_BYTES):
            return
