"""What was committed since a commit was planned, restricted to what that commit has read."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import ColumnElement, Connection, literal, or_, select, true, union_all

from app.access.errors import NotFound
from app.core.catalog.repository.head import NEXT_COMMIT_TIME
from app.core.catalog.tables import heads
from app.core.timeline.tables import commits, files
from app.core.timeline.values import NewCommit
from app.infra.db.any_of import any_of
from app.kernel.commit.commit_message import Reads
from app.kernel.commit.conflict import CommittedChange, Conflicted, expired_groups
from app.kernel.format.file_group import halved_slot

_CHANGED: Final = (files.c.file_group, files.c.partition_path, files.c.path)


class InconsistentCommit(Exception):
    """The commit names files that do not fit the table: a bug in its plan, never a lost race."""


def window_of(connection: Connection, commit: NewCommit, head_version: int) -> list[CommittedChange]:
    """The changes of commits after the read version to the files that this commit has read, and to its scope."""
    if head_version < commit.read_version:
        raise InconsistentCommit(
            f"planned at version {commit.read_version}, but the head is at {head_version}"
        )
    if head_version == commit.read_version:
        return []
    changes = union_all(
        *(
            select(version.label("version"), literal(is_removal).label("removed"), *_CHANGED).where(
                files.c.dataset_id == commit.dataset_id, version > commit.read_version, in_read_set(commit)
            )
            for version, is_removal in ((files.c.added_version, False), (files.c.removed_version, True))
        )
    ).subquery()
    query = select(commits.c.instant_id, *changes.c).join(changes, commits.c.version == changes.c.version)
    rows = connection.execute(query.where(commits.c.dataset_id == commit.dataset_id))
    return [CommittedChange(**row._asdict()) for row in rows]


def expired_window(
    connection: Connection, commit: NewCommit, head_version: int, earliest_version: int
) -> Conflicted | None:
    """A conflict in all that the commit has read, if the history begins after its read version.

    The rows of files that were removed before the history begins may be deleted, so the window would lack them.
    """
    if commit.read_version >= earliest_version:
        return None
    return _all_conflicts(connection, commit, head_version)


def expired_files(connection: Connection, commit: NewCommit, head_version: int) -> Conflicted | None:
    """A conflict in all that the commit has read, if it lists a file of an earlier version that may be deleted by now.

    A file that is listed here stays: a clean takes the lock that the caller has.
    """
    removed_paths = {path for message in commit.messages for path in message.removed}
    relisted_paths = {
        file.path
        for message in commit.messages
        for file in message.added
        if file.written_version is not None and file.path not in removed_paths
    }
    if not relisted_paths:
        return None
    query = select(files.c.path).where(
        files.c.dataset_id == commit.dataset_id, any_of(files.c.path, relisted_paths)
    )
    if relisted_paths <= set(connection.execute(query).scalars()):
        return None
    return _all_conflicts(connection, commit, head_version)


def other_watermark(
    connection: Connection, commit: NewCommit, head_version: int, watermark: datetime | None
) -> Conflicted | None:
    """A conflict in all that the commit has read, if its rows were compared with another watermark than the head's."""
    latenesses = (message.lateness for message in commit.messages if message.lateness is not None)
    if all(each.before == watermark for each in latenesses):
        return None
    return _all_conflicts(connection, commit, head_version)


def ended_tombstones(
    connection: Connection, commit: NewCommit, head_version: int, committed_at: datetime | None
) -> Conflicted | None:
    """A conflict in the file groups whose rows were compared with tombstones that end before the commit.

    `committed_at`: its time; None for a commit that makes no version. The caller has locked the head.
    """
    if all(message.valid_until is None for message in commit.messages):
        return None
    if committed_at is None:
        committed_at = next_commit_time(connection, commit.dataset_id)
    groups = expired_groups(commit.messages, committed_at)
    return _conflict_in(connection, commit, head_version, groups) if groups else None


def next_commit_time(connection: Connection, dataset_id: str) -> datetime:
    """The least time that a commit of the dataset can have from now on. Raises NotFound (dataset gone)."""
    query = select(NEXT_COMMIT_TIME).where(heads.c.dataset_id == dataset_id)
    moment: datetime | None = connection.execute(query).scalar_one_or_none()
    if moment is None:
        raise NotFound(f"there is no dataset {dataset_id!r}")
    return moment


def _all_conflicts(connection: Connection, commit: NewCommit, head_version: int) -> Conflicted:
    groups = tuple(sorted({message.file_group for message in commit.messages}))
    return _conflict_in(connection, commit, head_version, groups)


def _conflict_in(
    connection: Connection, commit: NewCommit, head_version: int, file_groups: tuple[str, ...]
) -> Conflicted:
    winner = select(commits.c.instant_id).where(
        commits.c.dataset_id == commit.dataset_id, commits.c.version == head_version
    )
    return Conflicted(
        file_groups=file_groups,
        winner=connection.execute(winner).scalar_one(),
        winner_version=head_version,
        head_version=head_version,
    )


def groups_read(commit: NewCommit) -> list[str] | None:
    """The file groups that the commit has read, if it has read these and nothing else."""
    plain = commit.scope is None and all(
        each.reads is Reads.GROUP and halved_slot(each.file_group) is None for each in commit.messages
    )
    return sorted({each.file_group for each in commit.messages}) if plain else None


def in_read_set(commit: NewCommit) -> ColumnElement[bool]:
    """Whether the commit has read a file: its conflict check compares these, and it may remove only these."""
    if commit.scope is not None and commit.scope.partitions is None:
        return true()
    read = [
        any_of(files.c.file_group, {each.file_group for each in commit.messages if each.reads is Reads.GROUP})
    ]
    paths = [path for each in commit.messages if each.reads is Reads.FILES for path in each.removed]
    if paths:
        read.append(any_of(files.c.path, paths))
    # A bucket that is halved: its parts remove its files, and whether it was halved shows in other file groups.
    halved_paths = {
        slot.partition_path for each in commit.messages if (slot := halved_slot(each.file_group)) is not None
    }
    if halved_paths:
        read.append(any_of(files.c.partition_path, halved_paths))
    if commit.scope is not None:
        read.append(any_of(files.c.partition_path, commit.scope.partitions or ()))
    return or_(*read)
