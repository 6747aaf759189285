"""A Parquet file of a scan that is read in ranges: only the footer and the chunks of the columns that are needed."""

from __future__ import annotations

import io

from headwater_client.client import Headwater
from headwater_client.models import ScanPart


class PartFile(io.RawIOBase):
    """The file of a part, each read of which is a request. Not to be used by several threads at once."""

    def __init__(self, headwater: Headwater, part: ScanPart) -> None:
        self._headwater = headwater
        self._part = part
        self._size = part.size_bytes or 0
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Moves to a byte."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int = -1, /) -> bytes:
        """Up to `size` bytes; all that follow for -1. Raises DamagedDownload, Problem."""
        left = max(self._size - self._at, 0)
        count = left if size < 0 else min(size, left)
        if not count:
            return b""
        content = self._headwater.read_scan_part_range(self._part, self._at, count)
        self._at += count
        return content
