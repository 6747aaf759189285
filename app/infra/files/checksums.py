"""Checksums of files: computed while writing, verified before the first read of a process.

A process that has read very many files hashes those again that it has not read for long.
"""

from __future__ import annotations

import hashlib
import io
from typing import BinaryIO, Final, Protocol

import pyarrow as pa
import xxhash

from app.infra.files.errors import CorruptFile
from app.infra.sharing.byte_cache import ByteCache

_STEP_BYTES = 8 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024
_VERIFIED_BYTES_MAX: Final = 16 * 1024 * 1024
_DIGEST_BYTES: Final = 16
_SHA256_DIGITS: Final = 64

# The files that this process has verified, by a hash of path and checksum.
verified_files: Final = ByteCache[bytes, bool](_VERIFIED_BYTES_MAX)


class HashingSink(io.RawIOBase):
    """A write-only file object that forwards all bytes and computes their number and XXH3-128."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._digest = xxhash.xxh3_128()
        self.size_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        view = memoryview(data).cast("B")  # type: ignore[arg-type]
        self._sink.write(view)
        self._digest.update(view)
        self.size_bytes += view.nbytes
        return view.nbytes

    @property
    def checksum(self) -> str:
        """XXH3-128, hexadecimal."""
        return self._digest.hexdigest()


def buffered(sink: HashingSink) -> pa.BufferedOutputStream:
    """The sink for Arrow's writers. Leaving its context flushes the buffer.

    Arrow writes in many small pieces, and each would take Python's lock to reach the sink: the threads of the API would
    wait for each other longer than they work.
    """
    return pa.BufferedOutputStream(pa.PythonFile(sink, mode="w"), _BUFFER_BYTES)


class Checksummed(Protocol):
    """A file with the size and the checksum that were recorded when it was written: XXH3-128, or SHA-256."""

    @property
    def path(self) -> str: ...

    @property
    def size_bytes(self) -> int: ...

    @property
    def checksum(self) -> str: ...


def verify(file: Checksummed, stream: pa.NativeFile) -> None:
    """Compares size and checksum with the values that were recorded when the file was written.

    Files never change, so each is hashed at the first read; the size is compared every time. Raises CorruptFile.
    """
    size = stream.size()
    if size != file.size_bytes:
        raise CorruptFile(
            f"{file.path} has {size} bytes, but its commit recorded {file.size_bytes}", path=file.path
        )
    key = xxhash.xxh3_128_digest(f"{file.path}\0{file.checksum}".encode())
    if verified_files.get(key) is None:
        _verify_content(file.path, file.checksum, stream)
        verified_files.put(key, True, _DIGEST_BYTES)


def is_sha256(checksum: str) -> bool:
    """Whether a checksum is a SHA-256, and not an XXH3-128."""
    return len(checksum) == _SHA256_DIGITS


def _verify_content(path: str, checksum: str, stream: pa.NativeFile) -> None:
    # Bytes that were uploaded to a link have the digest that its user computed.
    digest = hashlib.sha256() if is_sha256(checksum) else xxhash.xxh3_128()
    stream.seek(0)
    while chunk := stream.read_buffer(_STEP_BYTES):
        if not len(chunk):
            break
        digest.update(memoryview(chunk))
    stream.seek(0)
    if digest.hexdigest() != checksum:
        raise CorruptFile(f"{path} is damaged: its checksum is not the recorded one", path=path)
