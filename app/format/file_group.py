"""Files of a dataset: what the catalogue knows of each, and which of them belong together."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from app.format.rows.staging import Slot


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


class FileKind(str, Enum):
    """What a data file holds: rows of the table, writes that are merged on read, or writes that wait for a bucket."""

    BASE = "base"
    LOG = "log"
    POSTPONED = "postponed"


class DeletionVector(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows of a data file are gone, by position: a slice of a file of serialized bitmaps.

    `cardinality` is the number of positions in it.
    """

    path: str
    offset: int
    size_bytes: int
    checksum: str
    cardinality: int


class IndexKind(str, Enum):
    """What a key index file can tell: where a key is, or whether it may be there."""

    RECORD = "record"
    BLOOM = "bloom"


class IndexFile(msgspec.Struct, frozen=True, kw_only=True):
    """The key index of one data file."""

    path: str
    size_bytes: int
    checksum: str
    kind: IndexKind


class DataFile(StoredFile, frozen=True, kw_only=True):
    """A file of rows. `slot` is its partition and bucket, `statistics` is keyed by field id.

    A file that loses rows to a deletion vector is listed anew: same path, other vector, other `added_version`, which is
    the version since which it is as it is here. `written_version` is the commit that wrote it, `first_offset` the
    offset of the first change of its commit in its file group: both are given by that commit, so they are None until
    then; `first_offset` is None also where the commit told no changes. `clustered_by`: the mark of the order in which
    its rows stand, None for none (`app.format.clustering`).
    """

    file_group: str
    slot: Slot
    statistics: dict[str, ColumnStatistics] = {}
    kind: FileKind = FileKind.BASE
    added_version: int | None = None
    written_version: int | None = None
    first_offset: int | None = None
    deletion_vector: DeletionVector | None = None
    index_file: IndexFile | None = None
    clustered_by: str | None = None

    @property
    def live_rows(self) -> int:
        """Rows that no deletion vector has taken out."""
        return self.row_count - (self.deletion_vector.cardinality if self.deletion_vector else 0)

    @property
    def paths(self) -> list[str]:
        """Everything on storage that belongs to the file."""
        parts = (self, self.deletion_vector, self.index_file)
        return [part.path for part in parts if part is not None]


class ChangelogFile(StoredFile, frozen=True, kw_only=True):
    """The changes that one commit made to one file group, in feed order.

    `corrects_min`, `corrects_max`: the least and greatest offset that they take back, None if they take none back; in
    their stored form (see `CorrectedBounds`) until the commit has given the file its first offset.
    """

    file_group: str
    corrects_min: int | None = None
    corrects_max: int | None = None


class ChangelogSegment(msgspec.Struct, frozen=True, kw_only=True):
    """A changelog file and its place in the feed: its rows have the offsets from `first_offset` on."""

    file: ChangelogFile
    first_offset: int
    version: int
    committed_at: datetime

    @property
    def end_offset(self) -> int:
        """The offset behind the last of its rows."""
        return self.first_offset + self.file.row_count


def bucket_file_group(slot: Slot) -> str:
    """The file group of a bucket: one for ever, so that two writers of one bucket always meet.

    Under the dynamic modes `slot.bucket` is a segment of the key hashes, whose group holds several buckets; under
    key_dynamic the partition is empty, since a group holds its keys in whichever partition they are.
    """
    return f"{slot.partition_path}/bucket-{slot.bucket:05d}".lstrip("/")


def bucket_slot(file_group: str) -> Slot:
    """The slot that gave a bucket's file group its name."""
    partition_path, _, bucket = file_group.rpartition("bucket-")
    return Slot(partition_path=partition_path.rstrip("/"), bucket=int(bucket))


def append_file_group(slot: Slot, attempt: str) -> str:
    """The file group of rows without a key: new with every attempt, so that appends never meet."""
    return f"{slot.partition_path}/append-{attempt}".lstrip("/")


def partition_of(file_group: str) -> str:
    """The path of the partition that a group lies in; empty for the groups of key_dynamic, which lie in none."""
    return file_group.rpartition("/")[0]
