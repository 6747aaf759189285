"""The files and partitions of a table at a version, and the sums of both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import Action


class FileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A filter of the files of a version: by the path of a partition, by kind; None selects all."""

    partition: str | None = None
    kind: FileKind | None = None


class PartitionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one partition at a version.

    `rows`: the rows of base files that no deletion vector deletes. Readers see these, unless there are `logs`, which
    may add, change or delete rows. `written_version`: the version of the last commit that wrote one of the files or
    deleted rows of one, table services included.
    """

    path: str
    base_files: int
    logs: int
    postponed: int
    tombstone_files: int
    rows: int
    log_rows: int
    postponed_rows: int
    size_bytes: int
    written_version: int
    written_at: datetime


class KindTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a kind. `rows`: the stored rows. `deleted_rows`: those of them that deletion vectors delete."""

    files: int = 0
    rows: int = 0
    deleted_rows: int = 0
    size_bytes: int = 0
    vector_bytes: int = 0
    index_bytes: int = 0

    def __add__(self, other: KindTotals) -> KindTotals:
        return KindTotals(
            **{name: getattr(self, name) + getattr(other, name) for name in self.__struct_fields__}
        )


class SizeClass(msgspec.Struct, frozen=True, kw_only=True):
    """The base files of a range of sizes."""

    below: int | None
    """The files have fewer bytes, and at least the bound of the previous class; null for no bound."""
    files: int
    """Their number."""
    size_bytes: int
    """Their size in bytes."""


class ChangelogTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the feed that are kept."""

    files: int
    size_bytes: int


class CommitTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All commits of an action so far, and the bytes of data files that they wrote."""

    action: Action
    commits: int
    added_bytes: int
    committed_at: datetime


class TableTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a table at a version.

    `service_times`: when each table service last succeeded, also without work to do. `small_files`: base files
    that are much smaller than the target size. `lag`: the number of changes that the consumer farthest behind has not
    committed; None without consumers.
    """

    kinds: Mapping[FileKind, KindTotals]
    sizes: tuple[SizeClass, ...]
    partitions: int
    file_groups: int
    small_files: int
    changelog: ChangelogTotals
    commits: tuple[CommitTotals, ...]
    service_times: Mapping[Action, datetime]
    consumers: int
    lag: int | None
    queued_jobs: int
    running_jobs: int
