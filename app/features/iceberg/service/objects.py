"""Objects of a table that this room renders."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

import msgspec


class RenderedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object whose bytes are there. `etag`: of them, or of a path, which has the same bytes for ever."""

    content: bytes
    etag: str
    media_type: str

    @property
    def size_bytes(self) -> int:
        """The size of the object."""
        return len(self.content)

    @property
    def held_bytes(self) -> int:
        """The size of the object."""
        return len(self.content)

    def read_in_memory(self, start: int, count: int) -> bytes:
        """Bytes of the object."""
        return self.content[start : start + count]

    def read(self, start: int, count: int) -> bytes:
        """Bytes of the object."""
        return self.content[start : start + count]


class UnrenderedObject(msgspec.Struct, frozen=True, kw_only=True):
    """An object whose bytes `render` makes, or has made. `etag`: of its path, which has the same bytes for ever."""

    size_bytes: int
    etag: str
    media_type: str
    render: Callable[[], bytes]
    held_bytes: int = 0

    def read_in_memory(self, start: int, count: int) -> None:
        """None: the object has no bytes itself."""

    def read(self, start: int, count: int) -> bytes:
        """Bytes of the object."""
        return self.render()[start : start + count]


def etag_of(*parts: str) -> str:
    """The ETag of an object whose path names what it is rendered from."""
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
