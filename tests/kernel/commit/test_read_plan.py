"""Plans of reads: which files of a group a reader opens."""

from __future__ import annotations

import pytest

from app.kernel.commit.read_plan import plan_read
from app.kernel.commit.table_rows import BaseRows, MergedRows, table_rows
from app.kernel.format.file_group import DataFile, FileKind, Slot, bucket_file_group
from tests.support.lakehouse import definition

BASE, LOG, POSTPONED, TOMBSTONE = FileKind


def file_of(kind: FileKind, number: int) -> DataFile:
    slot = Slot(partition_path="", bucket=0)
    return DataFile(
        path=f"{number}", size_bytes=10, checksum="", row_count=5, schema_id=1, file_group=bucket_file_group(slot),
        slot=slot, kind=kind, added_version=number,
    )  # fmt: skip


# Kinds of the files of a group in the order of their commits, and which of them are read.
PLANS = [
    ([BASE, TOMBSTONE, BASE], [0, 2]),
    ([TOMBSTONE], []),
    ([POSTPONED, TOMBSTONE], []),
    ([TOMBSTONE, BASE, LOG, POSTPONED], [0, 1, 2]),
    ([LOG, TOMBSTONE], [0, 1]),
]


@pytest.mark.parametrize(("kinds", "read"), PLANS)
def test_tombstones_are_read_only_beside_logs(kinds: list[FileKind], read: list[int]) -> None:
    files = [file_of(kind, number) for number, kind in enumerate(kinds)]
    scans = plan_read(definition(), files)
    assert [file.path for scan in scans for file in scan.files] == [str(number) for number in read]
    pieces = table_rows(scans, piece_bytes=1_000_000)
    merged = LOG in kinds
    assert all(isinstance(piece, MergedRows if merged else BaseRows) for piece in pieces)
    assert len(pieces) == (1 if merged else len(read))
    if not merged:
        assert [scan.row_ranges for scan in scans] == ([((0, 5 * len(read)),)] if read else [])
