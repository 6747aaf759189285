"""Files of results: what a task has written of an export or a read, and what is kept of it as a file of the run."""

from __future__ import annotations

import msgspec


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """An exported file. `end`: the position in the feed up to which it has events.

    `checksum` is XXH3-128, `sha256` is SHA-256; both are hexadecimal.
    """

    path: str
    row_count: int
    size_bytes: int
    checksum: str
    sha256: str
    end: int


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a run on storage. `checksum` is XXH3-128, hexadecimal."""

    path: str
    name: str
    row_count: int
    size_bytes: int
    checksum: str
