"""Damage of stored files is found: by the size at each open, by the checksum at a process's first."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.infra.files.checksums import HashingSink, verify
from app.infra.files.errors import CorruptFile
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from app.kernel.format.quarantine import QuarantineFile


@pytest.fixture
def stored(tmp_path: Path) -> QuarantineFile:
    """A file, as its commit recorded it; at a path of its own, since a process remembers what it has verified."""
    path = new_id()
    with LocalStorage(tmp_path).create(path) as file:
        sink = HashingSink(file)
        sink.write(b"1234567890")
    return QuarantineFile(path=path, size_bytes=sink.size_bytes, checksum=sink.checksum, row_count=1)


def open_and_verify(root: Path, file: QuarantineFile) -> None:
    verify(file, LocalStorage(root).open(file.path))


def test_file_that_is_truncated_after_its_first_read_is_corrupt(
    tmp_path: Path, stored: QuarantineFile
) -> None:
    open_and_verify(tmp_path, stored)
    (tmp_path / stored.path).write_bytes(b"12345")
    with pytest.raises(CorruptFile, match="has 5 bytes, but its commit recorded 10") as error:
        open_and_verify(tmp_path, stored)
    assert error.value.facts == {"path": stored.path}


def test_file_with_other_bytes_is_corrupt(tmp_path: Path, stored: QuarantineFile) -> None:
    (tmp_path / stored.path).write_bytes(b"1234567899")
    for _ in range(2):
        with pytest.raises(CorruptFile, match="checksum"):
            open_and_verify(tmp_path, stored)
