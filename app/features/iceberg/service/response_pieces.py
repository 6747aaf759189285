"""Bodies of responses, of which a large part is compressed once and sent many times."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final

import msgspec

# Less processor time counts for more than fewer bytes: a document changes with each commit.
_LEVEL: Final = 1
# Magic, deflate, no flags, no time, no extra flags, unknown system.
_GZIP_HEADER: Final = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))
# An empty last block.
_END: Final = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS).flush()


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a body. `deflated`: it as whole blocks of deflate that refer to nothing before them."""

    text: bytes
    deflated: bytes

    @classmethod
    def of(cls, text: bytes) -> Piece:
        """The part with this text."""
        deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
        return cls(text=text, deflated=deflate.compress(text) + deflate.flush(zlib.Z_FULL_FLUSH))


def text_of(pieces: Sequence[Piece]) -> bytes:
    """The parts as one body."""
    return b"".join([piece.text for piece in pieces])


def gzip_of(pieces: Sequence[Piece]) -> bytes:
    """The parts as one body in gzip."""
    checksum = size = 0
    for piece in pieces:
        checksum = zlib.crc32(piece.text, checksum)
        size += len(piece.text)
    blocks = b"".join([piece.deflated for piece in pieces])
    return b"".join((_GZIP_HEADER, blocks, _END, struct.pack("<II", checksum, size & 0xFFFFFFFF)))
