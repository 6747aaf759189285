"""Files of a dataset: the catalogue's entry of each, their slots and their file groups."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any, Final

import msgspec

_SHARED: Final = "shared"
_BUCKET: Final = "bucket-"
_OF: Final = "-of-"


class Slot(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, order=True, omit_defaults=True
):
    """One bucket of one partition.

    `of`: where buckets are halved as they grow, the number of buckets that this one is counted among, a power of two
    (`app.kernel.format.halving`); None where the dataset states their number.
    """

    partition_path: str
    bucket: int
    of: int | None = None


class ColumnStatistics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds and nulls of a column in a file."""

    minimum: Any = None
    """The least value, as JSON; null where unknown or too long to keep."""
    maximum: Any = None
    """The greatest value, as JSON; null where unknown or too long to keep."""
    null_count: int | None = None
    """How many nulls there are; null where unknown."""


class StoredFile(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that identify a file, open it and verify it."""

    path: str
    size_bytes: int
    checksum: str
    row_count: int
    schema_id: int


class FileKind(str, Enum):
    """What a data file contains: rows of the table, writes that are merged on read, writes without a bucket yet, or
    tombstones: the keys that a delete with an ordering value has removed.
    """

    BASE = "base"
    LOG = "log"
    POSTPONED = "postponed"
    TOMBSTONE = "tombstone"

    @property
    def is_pending(self) -> bool:
        """Whether it contains writes that are still to be merged with the rows of the table."""
        return self in (FileKind.LOG, FileKind.POSTPONED)

    @property
    def holds_rows(self) -> bool:
        """Whether it contains rows, of the table or of writes. Tombstones are not rows."""
        return self is not FileKind.TOMBSTONE


class DeletionVector(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The deleted rows of a data file, by position: a serialized bitmap, in `content` or in a slice of a file.

    `cardinality` is the number of positions in it. `path`: None for a bitmap in `content`.
    """

    path: str | None = None
    offset: int = 0
    size_bytes: int
    checksum: str
    cardinality: int
    content: bytes | None = None


class IndexKind(str, Enum):
    """What a key index file returns: the positions of a key, or whether the key may be in the file."""

    RECORD = "record"
    BLOOM = "bloom"


class IndexFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The key index of one data file."""

    path: str
    size_bytes: int
    checksum: str
    kind: IndexKind


class DataFile(StoredFile, frozen=True, kw_only=True):
    """A file of rows, or of tombstones. `slot` is its partition and bucket, `statistics` is keyed by field id.

    A file that loses rows to a deletion vector is listed again: same path, another vector, and another `added_version`,
    the version since which this entry is valid. `written_version` is the commit that wrote the file, and `written_at`
    its commit time; None for base files of older releases. `first_offset` is the offset of the first change of that
    commit in the file group. The commit assigns them, so they are None until then; `first_offset` stays None where the
    commit emitted no changes. `clustered_by`: the mark of the order of its rows, None if they have no order
    (`app.kernel.format.clustering`). `layout`: how its columns are stored (`app.kernel.format.rows.file_columns`); None
    for files of earlier releases.
    """

    file_group: str
    slot: Slot
    statistics: dict[str, ColumnStatistics] = {}
    kind: FileKind = FileKind.BASE
    added_version: int | None = None
    written_version: int | None = None
    written_at: datetime | None = None
    first_offset: int | None = None
    deletion_vector: DeletionVector | None = None
    index_file: IndexFile | None = None
    clustered_by: str | None = None
    layout: int | None = None

    @property
    def live_rows(self) -> int:
        """The number of rows that no deletion vector has deleted."""
        return self.row_count - (self.deletion_vector.cardinality if self.deletion_vector else 0)

    @property
    def paths(self) -> list[str]:
        """The paths of everything on storage that belongs to the file."""
        parts = (self, self.deletion_vector, self.index_file)
        return [part.path for part in parts if part is not None and part.path is not None]


def readable_files(group: Iterable[DataFile]) -> list[DataFile]:
    """Of the files of a file group, those that a reader of its rows opens, in the same order.

    Postponed writes are invisible. Tombstones are read only where logs are, whose rows are compared with them.
    """
    files = [file for file in group if file.kind is not FileKind.POSTPONED]
    if any(file.kind is FileKind.LOG for file in files):
        return files
    return [file for file in files if file.kind.holds_rows]


class ChangelogFile(StoredFile, frozen=True, kw_only=True):
    """The changes that one commit made to a file group, or to several of a partition one after another, in feed order.

    `file_group`: for several groups the name of `shared_changes`.
    `corrects_min`, `corrects_max`: the least and greatest offset of the changes that they retract, None if they retract
    no change; in their stored form (see `CorrectedBounds`) until the commit assigns the file its first offset.
    """

    file_group: str
    corrects_min: int | None = None
    corrects_max: int | None = None


class ChangelogSegment(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that one commit made to one file group, and their position in the feed.

    They are the `row_count` rows of `file` from `first_row` on, and have the offsets from `first_offset` on. A file
    that was merged has the segments of several commits; its `file_group` and bounds of corrections are those of the
    segment.
    """

    file: ChangelogFile
    first_offset: int
    version: int
    committed_at: datetime
    row_count: int
    first_row: int = 0

    @property
    def end_offset(self) -> int:
        """The offset behind the last of its changes."""
        return self.first_offset + self.row_count

    @property
    def size_bytes(self) -> int:
        """The share of its rows in the bytes of the file."""
        return self.file.size_bytes * self.row_count // max(self.file.row_count, 1)

    def row_of(self, offset: int) -> int:
        """The row of the file that the change with this offset is in."""
        return self.first_row + offset - self.first_offset


def bucket_file_group(slot: Slot) -> str:
    """The file group of a bucket. It never changes, so two writers of one bucket always conflict.

    The name of a bucket that is halved as it grows has the number of buckets that it is counted among.

    Under the dynamic modes `slot.bucket` is a segment of the key hashes, and its group has several buckets. Under
    key_dynamic the partition is empty, since a group has its keys in whatever partition they are.
    """
    of = "" if slot.of is None else f"{_OF}{slot.of}"
    return f"{slot.partition_path}/{_BUCKET}{slot.bucket:05d}{of}".lstrip("/")


def bucket_slot(file_group: str) -> Slot:
    """The slot that the name of a bucket's file group is derived from."""
    partition_path, _, name = file_group.rpartition(_BUCKET)
    bucket, _, of = name.partition(_OF)
    return Slot(partition_path=partition_path.rstrip("/"), bucket=int(bucket), of=int(of) if of else None)


def halved_slot(file_group: str) -> Slot | None:
    """`bucket_slot` of a bucket that is halved as it grows; None for every other file group."""
    name = file_group.rpartition("/")[2]
    return bucket_slot(file_group) if name.startswith(_BUCKET) and _OF in name else None


PARTITION_END: Final = "0"
"""Follows `/`, so the name of each file group of a partition is between its path with `/` and its path with this."""


def bucket_prefix(partition_path: str) -> str:
    """What the names of the file groups of a partition's buckets begin with."""
    return f"{partition_path}/{_BUCKET}".lstrip("/")


def append_file_group(slot: Slot, attempt: str) -> str:
    """The file group of rows without a key: new for every attempt, so that appends never conflict."""
    return f"{slot.partition_path}/append-{attempt}".lstrip("/")


def shared_changes(partition_path: str) -> str:
    """What a changelog file with the changes of several file groups of the partition has as its file group."""
    return f"{partition_path}/{_SHARED}".lstrip("/")


def is_shared(file_group: str) -> bool:
    """Whether a changelog file with this file group has the changes of several."""
    return file_group.rpartition("/")[2] == _SHARED


def partition_of(file_group: str) -> str:
    """The path of the partition of a group; empty for the groups of key_dynamic, which have no single partition."""
    return file_group.rpartition("/")[0]
