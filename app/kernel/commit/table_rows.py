"""The pieces of a table that the tasks of a read or an export read: rows of base files, or merged file groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from app.kernel.commit.read_plan import GroupScan
from app.kernel.format.file_group import DataFile, FileKind

# Large files are cut at multiples of this number of rows, which is that of row groups.
_CUT_ROWS: Final = 128 * 1024


class BaseRows(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The live rows among rows [first, end) of a base file."""

    file: DataFile
    first: int
    end: int

    @property
    def size_bytes(self) -> int:
        """The approximate number of bytes to read."""
        return self.file.size_bytes * (self.end - self.first) // max(self.file.row_count, 1)


class MergedRows(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The rows of a file group with logs. `files`: in the order of their commits."""

    files: tuple[DataFile, ...]

    @property
    def size_bytes(self) -> int:
        """The number of bytes to read."""
        return sum(file.size_bytes for file in self.files)


TableRows = BaseRows | MergedRows


def table_rows(
    scans: Sequence[GroupScan],
    *,
    piece_bytes: int,
    limit: int | None = None,
    changed_after: int | None = None,
) -> list[TableRows]:
    """The pieces to read of a version, by file group, each of about `piece_bytes` of a file, or a merged group.

    `limit`: the number of rows that suffice, whichever they are; None for all. `changed_after`: pieces that certainly
    have no row from a later commit than this version are omitted, unless None.
    """
    pieces: list[TableRows] = []
    remaining_rows = limit
    for scan in scans:
        if remaining_rows is not None and remaining_rows <= 0:
            break
        if any(file.kind is FileKind.LOG for file in scan.files):
            if any(_may_be_later(file, changed_after) for file in scan.files):
                # The number of its rows is known only after the merge.
                pieces.append(MergedRows(files=scan.files))
            continue
        for file in _scanned_files(scan):
            if not _may_be_later(file, changed_after):
                continue
            pieces += cut_file(file, piece_bytes)
            if remaining_rows is not None:
                remaining_rows -= file.live_rows
                if remaining_rows <= 0:
                    break
    return pieces


def _may_be_later(file: DataFile, version: int | None) -> bool:
    """Whether rows of the file may be from a commit after the version. No row is from a later commit than its file."""
    return version is None or file.written_version is None or file.written_version > version


def _scanned_files(scan: GroupScan) -> Iterator[DataFile]:
    """The files of a group without logs that contain its row ranges; no range ends within a file."""
    start = 0
    for file in scan.files:
        if file.live_rows and any(
            first <= start and (end is None or start < end) for first, end in scan.row_ranges
        ):
            yield file
        start += file.live_rows


def cut_file(file: DataFile, piece_bytes: int) -> Iterator[BaseRows]:
    """A base file in pieces of about this size, which end where row groups are likely to."""
    row_bytes = file.size_bytes / max(file.row_count, 1)
    groups = max(int(piece_bytes / max(row_bytes * _CUT_ROWS, 1)), 1)
    step = groups * _CUT_ROWS
    for first in range(0, file.row_count, step):
        yield BaseRows(file=file, first=first, end=min(first + step, file.row_count))
