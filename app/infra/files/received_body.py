"""Incoming request bodies: small ones stay in memory, larger ones are written to storage while they arrive."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import BinaryIO, Self

import msgspec
import xxhash

from app.infra.files.ports import ObjectStorage
from app.kernel.format.errors import BodyTooLarge, MalformedBody


class StoredBody(msgspec.Struct, frozen=True, kw_only=True):
    """A body on storage."""

    path: str
    size_bytes: int
    checksum: str


class BodySpool(AbstractContextManager["BodySpool"]):
    """Receives the chunks of one body and keeps at most `memory_bytes_max` of them in memory.

    Without `finish`, nothing is left on storage.
    """

    def __init__(self, storage: ObjectStorage, path: str, *, memory_bytes_max: int, bytes_max: int) -> None:
        self._storage = storage
        self._path = path
        self._memory_bytes_max = memory_bytes_max
        self._bytes_max = bytes_max
        self._memory = bytearray()
        self._file: BinaryIO | None = None
        self._open = ExitStack()
        self._digest = xxhash.xxh3_128()
        self._size_bytes = 0

    def stays_in_memory(self, more_bytes: int = 0) -> bool:
        """Whether the body stays in memory with `more_bytes` more: then no method here waits for the storage."""
        return self._file is None and len(self._memory) + more_bytes <= self._memory_bytes_max

    def feed(self, chunk: bytes) -> None:
        """Adds a chunk. Raises BodyTooLarge, StorageFull."""
        self._size_bytes += len(chunk)
        if self._size_bytes > self._bytes_max:
            raise BodyTooLarge(f"the body is over {self._bytes_max} bytes", limit_bytes=self._bytes_max)
        self._digest.update(chunk)
        if self._file is None and not self.stays_in_memory(len(chunk)):
            self._file = self._open.enter_context(self._storage.create(self._path))
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += chunk
        else:
            self._file.write(chunk)

    def finish(self) -> bytes | StoredBody:
        """The whole body, or its place on storage. Raises MalformedBody for an empty body."""
        if self._size_bytes == 0:
            raise MalformedBody("the body is empty")
        if self._file is None:
            return bytes(self._memory)
        self._open.close()
        return StoredBody(path=self._path, size_bytes=self._size_bytes, checksum=self.checksum)

    @property
    def checksum(self) -> str:
        """XXH3-128 of the bytes so far, hexadecimal."""
        return self._digest.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The exception reaches the storage's writer, which then deletes the partial file.
        self._open.__exit__(kind, error, trace)
