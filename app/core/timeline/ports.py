"""What use cases need of timelines.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from app.core.timeline.values import (
    Fenced,
    GroupFiles,
    NewCommit,
    Overtaken,
    Published,
    Winner,
    WritesRunning,
)
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.prune import RowFilter


class OutcomeUnknown(Exception):
    """The connection broke while the commit was under way: it may or may not have happened."""


class VersionReader(Protocol):
    """The versions of a dataset, and their files."""

    def live_files(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        file_groups: Sequence[str] | None,
        partitions: Sequence[str] = (),
    ) -> list[DataFile]:
        """Data files visible at `version`, ordered by path; of the named file groups and of all buckets of these
        partitions only, unless `file_groups` is None.

        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        ...

    def version_at(self, tenant_id: str, dataset_id: str, moment: datetime) -> int:
        """The latest version committed at or before `moment`; 0 if there is none."""
        ...

    def schema_at(self, tenant_id: str, dataset_id: str, version: int) -> Schema:
        """The schema that the dataset had at a version that it has reached."""
        ...

    def next_offset(self, tenant_id: str, dataset_id: str, version: int) -> int:
        """How many changes the feed had at a version that the dataset has reached."""
        ...

    def version_of(self, tenant_id: str, dataset_id: str, offset: int) -> int:
        """The first version at which the feed had this number of changes, which it has reached; 0 for none."""
        ...

    def commit_times(self, tenant_id: str, dataset_id: str, versions: Sequence[int]) -> dict[int, datetime]:
        """When these versions were committed; those that there are not are left out."""
        ...

    def next_commit_time(self, tenant_id: str, dataset_id: str) -> datetime:
        """The least time that a commit of the dataset can have from now on, by the clock of the database.

        Raises NotFound (dataset gone).
        """
        ...


class VersionGroups(Protocol):
    """The file groups of a version, in the order of their names: those that have files of some kinds."""

    def files_of_groups(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        kinds: Collection[FileKind],
        first: str,
        end: str,
        limit: int,
        where: RowFilter | None = None,
    ) -> GroupFiles:
        """The files of some groups from the name `first` on, and before `end`, ordered by group and path.

        There are at most `limit`, and more where a single group has more: all of the group are among them. With
        `where`, base files are left out that have no selected row by their statistics. Raises VersionExpired, NotFound
        (dataset gone).
        """
        ...

    def partition_paths(self, tenant_id: str, dataset_id: str, version: int) -> list[str]:
        """The paths of partitions that may have files at the version, each once, in any order.

        Raises VersionExpired, NotFound (dataset gone).
        """
        ...

    def group_at(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], number: int
    ) -> str | None:
        """The name of the group that this number of others precede; None if there are fewer.

        Raises VersionExpired, NotFound (dataset gone).
        """
        ...

    def rows_from(
        self, tenant_id: str, dataset_id: str, version: int, kinds: Collection[FileKind], first: str
    ) -> int:
        """The number of live rows in the files of the groups from the name `first` on.

        Raises VersionExpired, NotFound (dataset gone).
        """
        ...


class VersionRows(VersionReader, VersionGroups, Protocol):
    """What pages of rows need of versions."""


class Winners(Protocol):
    """The commits that refused writes lost to."""

    def winner_of_instant(self, tenant_id: str, dataset_id: str, instant_id: str) -> Winner | None:
        """The commit of an instant, without its file groups; None if there is none."""
        ...

    def winner_since(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        """The latest commit after a version, and the file groups that changed since; None if there is none."""
        ...

    def winner_with_rows(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        """The latest write up to a version, and the file groups with files at it; None if there is none."""
        ...


class Publication(Protocol):
    """New versions."""

    def publish(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
        """The commit transaction: commits of different datasets, all or none.

        Without file changes the jobs of a commit succeed at the current version and no version is made. Raises
        CommitConflict where a dataset is not at the version that its commit expects, OutcomeUnknown if the connection
        breaks once COMMIT was sent.
        """
        ...

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        """After OutcomeUnknown: waits for the head rows, then returns whether the jobs were published.

        `jobs_of`: by dataset, as they were published together.
        """
        ...


class SlotPublication(Protocol):
    """New versions of table services, which publish between two groups of writes."""

    def publish_in_slot(
        self, tenant_id: str, commit: NewCommit, slot_seconds: float
    ) -> Published | Conflicted | Fenced | WritesRunning:
        """`publish` unless writes run: then it waits, and no others are claimed for `slot_seconds`.

        Raises OutcomeUnknown if the connection breaks once COMMIT was sent.
        """
        ...

    def release_slot(self, tenant_id: str, dataset_id: str) -> None:
        """Ends a commit slot: writes can be claimed again."""
        ...

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        """After OutcomeUnknown: waits for the head rows, then returns whether the jobs were published.

        `jobs_of`: by dataset, as they were published together.
        """
        ...
