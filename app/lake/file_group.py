"""Files of a dataset: what the catalogue knows of each, and which of them belong together."""

from __future__ import annotations

from typing import Any

import msgspec

from app.lake.staging import Slot


class ColumnStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one column in one file, as JSON values; null where unknown or too long to keep."""

    minimum: Any = None
    maximum: Any = None
    null_count: int | None = None


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """What it takes to open a file and to know that it is the one that was written."""

    path: str
    size_bytes: int
    checksum: str
    row_count: int
    schema_id: int


class DataFile(StoredFile, frozen=True, kw_only=True):
    """A base file. `file_group` is stable over the life of a bucket; `statistics` is keyed by field id."""

    file_group: str
    slot: Slot
    statistics: dict[str, ColumnStatistics] = {}


class ChangelogFile(StoredFile, frozen=True, kw_only=True):
    """The changes that one commit made to one file group, in feed order."""

    file_group: str


def bucket_file_group(slot: Slot) -> str:
    """The file group of a bucket: one for ever, so that two writers of one bucket always meet."""
    return f"{slot.partition_path}/bucket-{slot.bucket:05d}".lstrip("/")


def append_file_group(slot: Slot, attempt: str) -> str:
    """The file group of rows without a key: new with every attempt, so that appends never meet."""
    return f"{slot.partition_path}/append-{attempt}".lstrip("/")
