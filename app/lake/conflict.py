"""Conflict rules: may a commit that was planned at one version be published after others came in between?

The rules make the history serializable in the order of versions: whatever a commit read must still be so.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.lake.commit_message import CommitMessage
from app.lake.errors import CommitConflict
from app.lake.write_plan import Scope


class CommittedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that a commit after the plan's read version changed, in one of the partitions it did so."""

    version: int
    instant_id: str
    file_group: str
    partition_path: str


class Clean(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing that the commit read has changed."""


class Conflicted(msgspec.Struct, frozen=True, kw_only=True):
    """These file groups changed since they were read; `winner` is the latest instant that changed one.

    All other file groups are as they were read up to `head_version`: only the named ones need a new plan, unless the
    commit has a scope, which is then to be read again as a whole. `dataset_id`: among commits published together, the
    dataset whose commit it is.
    """

    file_groups: tuple[str, ...]
    winner: str
    head_version: int
    dataset_id: str = ""


def check_conflicts(
    messages: Iterable[CommitMessage],
    window: Iterable[CommittedChange],
    *,
    head_version: int,
    scope: Scope | None = None,
) -> Clean | Conflicted:
    """Compares what a commit read with the window (read version, `head_version`].

    A merge reads every file group it writes, even one that was empty: an insert must see that its key is new.
    Appends write file groups of their own, which no window can hold, so they never conflict. What a commit with a
    scope has read is all of the scope, also what was not there: any change in it is a conflict.
    """
    touched = {message.file_group for message in messages}
    hits = [change for change in window if change.file_group in touched or _within(change, scope)]
    if not hits:
        return Clean()
    winner = max(hits, key=lambda change: change.version)
    return Conflicted(
        file_groups=tuple(sorted({change.file_group for change in hits})),
        winner=winner.instant_id,
        head_version=head_version,
    )


def _within(change: CommittedChange, scope: Scope | None) -> bool:
    if scope is None:
        return False
    return scope.partitions is None or change.partition_path in scope.partitions


def check_version(dataset_id: str, expected: int | None, head_version: int) -> None:
    """Raises CommitConflict unless the head is at the version that the write expects, if it expects one."""
    if expected is not None and expected != head_version:
        raise CommitConflict(
            f"the write expects the dataset at version {expected}, and it is at {head_version}",
            dataset_id=dataset_id,
            expected_version=expected,
            head_version=head_version,
            retryable=False,
        )
