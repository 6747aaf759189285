"""Conflict rules: whether a commit that was planned at one version may be published after other commits.

The rules make the history serializable in the order of versions: everything that a commit read must be unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from app.kernel.commit.commit_message import CommitMessage, Reads
from app.kernel.commit.write_plan import WriteScope
from app.kernel.format.errors import CommitConflict
from app.kernel.format.file_group import Slot, halved_slot
from app.kernel.format.halving import overlap

# Of more file groups, the first are named in a problem document, with their number.
FILE_GROUPS_NAMED_MAX: Final = 100


class CommittedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a commit after the plan's read version added or removed, with its file group and partition."""

    version: int
    instant_id: str
    file_group: str
    partition_path: str
    path: str
    removed: bool


class Clean(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing that the commit read has changed."""


class Conflicted(msgspec.Struct, frozen=True, kw_only=True):
    """These file groups changed since they were read; `winner` is the latest instant that changed one, and
    `winner_version` the version that it made.

    So is a file group in which rows were compared with a tombstone that has ended since. All other file groups are
    unchanged up to `head_version`. Only the named groups need a new plan, unless the commit
    has a scope, which must then be read again as a whole. `dataset_id`: among commits published together, the dataset
    of this commit.
    """

    file_groups: tuple[str, ...]
    winner: str
    winner_version: int
    head_version: int
    dataset_id: str = ""


def check_conflicts(
    messages: Iterable[CommitMessage],
    window: Iterable[CommittedChange],
    *,
    head_version: int,
    scope: WriteScope | None = None,
) -> Clean | Conflicted:
    """Compares what a commit read with the window (read version, `head_version`].

    A merge reads every file group it writes, also an empty one: an insert depends on the absence of its keys. Appends
    write file groups of their own, which no window contains, so they never conflict. Logs never conflict either,
    because they are merged over any rows. A table service changes no rows, so it depends only on the files that it
    replaces: rows and logs that were added beside them stay beside the new files. A commit with a scope has read all of
    the scope, also the absence of rows: any change in it is a conflict. So is a change of a larger or smaller bucket
    with keys of the same bucket, for every commit: a bucket was halved.
    """
    owners = _owners(messages)
    hits = [
        (owner_groups or {change.file_group}, change)
        for change in window
        if (owner_groups := owners.of(change)) or _within(change, scope)
    ]
    if not hits:
        return Clean()
    _, winner = max(hits, key=lambda hit: hit[1].version)
    return Conflicted(
        file_groups=tuple(sorted({group for groups, _ in hits for group in groups})),
        winner=winner.instant_id,
        winner_version=winner.version,
        head_version=head_version,
    )


class _Owners(msgspec.Struct, frozen=True, kw_only=True):
    """The file groups and files (by path) that must be unchanged. `buckets`: by partition, all that may be halved."""

    groups: frozenset[str]
    files: dict[str, str]
    buckets: dict[str, list[tuple[Slot, str]]]

    def of(self, change: CommittedChange) -> set[str]:
        """The file groups of the messages that the change conflicts with."""
        groups = {change.file_group} & self.groups
        if change.removed and change.path in self.files:
            groups.add(self.files[change.path])
        slot = halved_slot(change.file_group)
        if slot is not None:
            others = self.buckets.get(slot.partition_path, ())
            groups |= {group for other, group in others if other != slot and overlap(other, slot)}
        return groups


def _owners(messages: Iterable[CommitMessage]) -> _Owners:
    groups: set[str] = set()
    files: dict[str, str] = {}
    buckets: dict[str, list[tuple[Slot, str]]] = {}
    for message in messages:
        slot = halved_slot(message.file_group)
        if slot is not None:
            buckets.setdefault(slot.partition_path, []).append((slot, message.file_group))
        match message.reads:
            case Reads.GROUP:
                groups.add(message.file_group)
            case Reads.FILES:
                files |= dict.fromkeys(message.removed, message.file_group)
    return _Owners(groups=frozenset(groups), files=files, buckets=buckets)


def expired_groups(messages: Iterable[CommitMessage], committed_at: datetime) -> tuple[str, ...]:
    """The file groups whose rows were compared with tombstones that have ended at the time of the commit."""
    return tuple(
        sorted(
            message.file_group
            for message in messages
            if message.valid_until is not None and message.valid_until < committed_at
        )
    )


def _within(change: CommittedChange, scope: WriteScope | None) -> bool:
    if scope is None:
        return False
    return scope.partitions is None or change.partition_path in scope.partitions


def check_version(dataset_id: str, expected_version: int | None, head_version: int) -> None:
    """Raises CommitConflict if the write expects a version and the head is at another."""
    if expected_version is not None and expected_version != head_version:
        raise CommitConflict(
            f"the write expects the dataset at version {expected_version}, but it is at {head_version}",
            dataset_id=dataset_id,
            expected_version=expected_version,
            head_version=head_version,
            retryable=False,
        )
