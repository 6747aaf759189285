"""Exports: what is written to files, and the tasks that write them.

A range of a feed is exported either as the changes that it tells, or as the rows that the changed keys have at its end.
Tasks take parts of the range and write files, which are told apart by the number of the task and their own.
"""

from __future__ import annotations

import msgspec


class ExportedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was written. `end`: the position of the feed up to which it has events.

    `checksum` is XXH3-128, `sha256` what it says; both hexadecimal.
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
