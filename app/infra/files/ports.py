"""Ports of the use cases. Every port has one test suite, which runs on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from datetime import datetime
from typing import BinaryIO, Protocol

import pyarrow as pa


class FileParts(Protocol):
    """An open file of which parts are read, by any number of threads at a time. It is closed once nothing has it."""

    def read(self, start: int, count: int) -> bytes:
        """These bytes; fewer at the end of the file. Raises CorruptFile, StorageUnavailable."""
        ...

    def read_in_memory(self, start: int, count: int) -> bytearray | None:
        """These bytes if the memory of the machine has all of them; None if a disk or a server has to be waited for.
        Never waits, so that it may be called on the event loop.
        """
        ...


class ObjectStorage(Protocol):
    """Files by path relative to the storage root. They survive a crash once their writer is closed, if `durable`."""

    def create(self, path: str, *, durable: bool = True) -> AbstractContextManager[BinaryIO]:
        """A writer for a new file; on an exception, no file is left. Raises StorageFull.

        `durable`: False for a file that can be made again after a crash of the machine.
        """
        ...

    def open(self, path: str) -> pa.NativeFile:
        """A reader of the file. Raises CorruptFile if it does not exist."""
        ...

    def parts(self, path: str) -> FileParts:
        """The opened file, for reads of its parts as bytes. Raises CorruptFile if it does not exist."""
        ...

    def size(self, path: str) -> int: ...

    def delete(self, paths: Iterable[str]) -> None:
        """Deletes files. Missing files are not an error."""
        ...

    def list(self, prefix: str) -> Iterable[tuple[str, datetime]]:
        """Paths below `prefix` with the times of their last change."""
        ...
