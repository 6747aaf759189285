"""Conflict rules: may a commit that was planned at one version be published after others came in between?

The rules make the history serializable in the order of versions: whatever a commit read must still be so.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from app.lake.commit_message import CommitMessage


class CommittedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that a commit after the plan's read version changed."""

    version: int
    instant_id: str
    file_group: str


class Clean(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing that the commit read has changed."""


class Conflicted(msgspec.Struct, frozen=True, kw_only=True):
    """These file groups changed since they were read; `winner` is the latest instant that changed one.

    All other file groups are as they were read up to `head_version`: only the named ones need a new plan.
    """

    file_groups: tuple[str, ...]
    winner: str
    head_version: int


def check_conflicts(
    messages: Iterable[CommitMessage], window: Iterable[CommittedChange], *, head_version: int
) -> Clean | Conflicted:
    """Compares what a commit read with the window (read version, `head_version`].

    A merge reads every file group it writes, even one that was empty: an insert must see that its key is new.
    Appends write file groups of their own, which no window can hold, so they never conflict.
    """
    touched = {message.file_group for message in messages}
    hits = [change for change in window if change.file_group in touched]
    if not hits:
        return Clean()
    winner = max(hits, key=lambda change: change.version)
    return Conflicted(
        file_groups=tuple(sorted({change.file_group for change in hits})),
        winner=winner.instant_id,
        head_version=head_version,
    )
