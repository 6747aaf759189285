"""What a table is made of at a version: its files, its partitions, and the sums of both."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

import msgspec

from app.format.file_group import FileKind
from app.format.instant import Action


class FileQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of the files of a version are wanted: of one partition by its path, of one kind; None for all."""

    partition: str | None = None
    kind: FileKind | None = None


class PartitionRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The files of one partition at a version.

    `rows`: those of base files that no deletion vector has taken out. These are what readers see, unless there are
    `logs`, which may bring more, or change or take out some. `written_version`: the last commit that wrote one of the
    files or took rows out of one, maintenance too.
    """

    path: str
    base_files: int
    logs: int
    postponed: int
    rows: int
    log_rows: int
    postponed_rows: int
    size_bytes: int
    written_version: int
    written_at: datetime


class KindTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All files of a kind. `rows` as they are stored, `deleted` those that deletion vectors have taken out."""

    files: int = 0
    rows: int = 0
    deleted: int = 0
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
    """They have fewer bytes, and no fewer than the bound of the class before; null for no bound."""
    files: int
    """How many there are."""
    size_bytes: int
    """Their size."""


class ChangelogTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the feed that are kept."""

    files: int
    size_bytes: int


class CommitTotals(msgspec.Struct, frozen=True, kw_only=True):
    """All commits of an action so far, and the bytes of data files that they wrote."""

    action: Action
    commits: int
    bytes_added: int
    committed_at: datetime


class TableTotals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of a table at a version. `served`: when a table service last did its work, also if that was nothing.

    `small_files`: base files far from the size at which the next is begun. `lag`: the changes that the consumer has
    before it that is farthest behind the head; None without consumers.
    """

    kinds: Mapping[FileKind, KindTotals]
    sizes: tuple[SizeClass, ...]
    partitions: int
    file_groups: int
    small_files: int
    changelog: ChangelogTotals
    commits: tuple[CommitTotals, ...]
    served: Mapping[Action, datetime]
    consumers: int
    lag: int | None
    jobs_queued: int
    jobs_running: int
