"""Parts of files as bytes, without waiting for a disk where the memory of the machine has them."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

import pyarrow as pa

# Linux reads with it only what its page cache has. Other systems and some file systems have no such read.
_NO_WAIT: Final = getattr(os, "RWF_NOWAIT", None)

Faults = Callable[[], AbstractContextManager[None]]
"""Converts errors of the system while a file is read."""


class LocalFileParts:
    """A file of a folder. See `FileParts`."""

    def __init__(self, descriptor: int, faults: Faults) -> None:
        """`descriptor`: of the file, which is closed with this object."""
        self._descriptor = descriptor
        self._faults = faults

    def __del__(self) -> None:
        os.close(self._descriptor)

    def read(self, start: int, count: int) -> bytes:
        """See `FileParts`."""
        with self._faults():
            return os.pread(self._descriptor, count, start)

    def read_in_memory(self, start: int, count: int) -> bytearray | None:
        """See `FileParts`."""
        if _NO_WAIT is None:
            return None
        part = bytearray(count)
        try:
            read_count = os.preadv(self._descriptor, [part], start, _NO_WAIT)
        except OSError:
            # Not in memory, or not a file system that has such reads. If it is a fault, `read` has it, too.
            return None
        return part if read_count == count else None


class ArrowFileParts:
    """An object of a bucket, of which each read is a request. See `FileParts`."""

    def __init__(self, file: pa.NativeFile, faults: Faults) -> None:
        self._file = file
        self._faults = faults

    def read(self, start: int, count: int) -> bytes:
        """See `FileParts`."""
        with self._faults():
            return bytes(self._file.read_at(count, start))

    def read_in_memory(self, start: int, count: int) -> bytearray | None:  # noqa: ARG002
        """See `FileParts`."""
        return None
