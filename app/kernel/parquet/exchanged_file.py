"""Ranges of an exchanged Parquet file, from ranges of the stored one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import TypeAlias

from app.kernel.parquet.exchange import Exchange
from app.kernel.parquet.exchanged_footer import (
    TRAILER_BYTES,
    ExchangedFooter,
    exchanged_footer,
    footer_bytes,
)

StoredRange: TypeAlias = Callable[[int, int], bytes]
"""Reads `count` bytes of the stored file from `start` on: (start, count)."""


def read_footer(read: StoredRange, stored_size: int, exchange: Exchange) -> ExchangedFooter:
    """The exchanged footer of a stored file of this size, with two reads of its end. Raises InvalidFooter."""
    trailer = read(max(stored_size - TRAILER_BYTES, 0), min(TRAILER_BYTES, stored_size))
    count = footer_bytes(trailer, stored_size)
    footer = read(stored_size - TRAILER_BYTES - count, count)
    return exchanged_footer(footer, stored_size, exchange)


class ExchangedFile:
    """The file that is served for a stored one. It reads only those bytes of it that are served."""

    def __init__(self, footer: ExchangedFooter, read: Callable[[int, int], bytes | bytearray]) -> None:
        self._footer = footer
        self._read = read
        self._starts = [start for start, _ in footer.ranges]

    @property
    def size_bytes(self) -> int:
        """The size of the served file."""
        return self._footer.size_bytes

    def read(self, start: int, count: int) -> bytes:
        """Up to `count` bytes from `start` on; fewer at the end of the file."""
        return b"".join(self._parts(start, min(start + count, self.size_bytes)))

    def _parts(self, start: int, end: int) -> Iterator[bytes | bytearray]:
        tail_start = self.size_bytes - len(self._footer.tail)
        yield from self._body(start, min(end, tail_start))
        if end > tail_start:
            yield self._footer.tail[max(start - tail_start, 0) : end - tail_start]

    def _body(self, start: int, end: int) -> Iterator[bytes | bytearray]:
        """Bytes [start, end) before the tail: those of the served ranges, and zeros between them."""
        position = start
        for number in range(max(bisect_right(self._starts, start) - 1, 0), len(self._starts)):
            first, last = self._footer.ranges[number]
            first, last = max(first, position), min(last, end)
            if first >= end:
                break
            if first < last:
                yield bytes(first - position)
                yield self._read(first, last - first)
                position = last
        yield bytes(max(end - position, 0))
