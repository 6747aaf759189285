"""Checksums of files: computed while writing, verified before the first read of a process."""

from __future__ import annotations

import io
from functools import lru_cache
from typing import BinaryIO

import pyarrow as pa
import xxhash

from app.format.errors import CorruptFile
from app.format.file_group import IndexFile, StoredFile
from app.format.quarantine import QuarantineFile
from app.format.rows.staged import RawInput, StagedFile

_STEP_BYTES = 8 * 1024 * 1024
_BUFFER_BYTES = 1024 * 1024
_REMEMBERED_FILES = 65_536


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


def verify(
    file: StoredFile | IndexFile | QuarantineFile | StagedFile | RawInput, opened: pa.NativeFile
) -> None:
    """Compares size and checksum with the values that were recorded when the file was written.

    Files never change, so each is hashed once per process; the size is compared every time. Raises CorruptFile.
    """
    size = opened.size()
    if size != file.size_bytes:
        raise CorruptFile(
            f"{file.path} has {size} bytes, but its commit recorded {file.size_bytes}", path=file.path
        )
    _verify_content(_Opened(file.path, file.checksum, opened))


class _Opened:
    """A cache key with the open file: equal if path and checksum are equal."""

    def __init__(self, path: str, checksum: str, opened: pa.NativeFile) -> None:
        self.path, self.checksum = path, checksum
        self.opened: pa.NativeFile | None = opened

    def __hash__(self) -> int:
        return hash((self.path, self.checksum))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Opened) and (self.path, self.checksum) == (other.path, other.checksum)


@lru_cache(maxsize=_REMEMBERED_FILES)
def _verify_content(entry: _Opened) -> None:
    # The cache keeps the key: remove the file from it, or every verified file would stay open.
    opened, entry.opened = entry.opened, None
    if opened is None:
        raise AssertionError("a file is verified once")
    digest = xxhash.xxh3_128()
    opened.seek(0)
    while chunk := opened.read_buffer(_STEP_BYTES):
        if not len(chunk):
            break
        digest.update(memoryview(chunk))
    opened.seek(0)
    if digest.hexdigest() != entry.checksum:
        raise CorruptFile(f"{entry.path} is damaged: its checksum is not the recorded one", path=entry.path)
