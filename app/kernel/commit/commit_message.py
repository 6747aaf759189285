"""The result of a merge task: the files it wrote and the row counts of each write."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from enum import Enum
from typing import Any

import msgspec

from app.kernel.commit.watermarks import Lateness
from app.kernel.format.file_group import ChangelogFile, DataFile, halved_slot
from app.kernel.format.instant import RowCounts
from app.kernel.format.quarantine import QuarantineFile


class KeyConflict(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    rename={"other_jobs": "blamed", "overflow_field": "overflowed"},
):
    """An insert of grouped write `job` has keys that are live, its rows move sums out of the range of a field, or it
    retracts rows without a key that are not there.

    `other_jobs`: the grouped writes whose rows cause the conflict; -1 stands for the table itself. `keys`: some of the
    keys. `count`: the number of keys or rows. `overflow_field`: the field whose sum does not fit. `absent`: the
    positions in the write of some of the rows that are not there.
    """

    job: int
    other_jobs: tuple[int, ...]
    keys: tuple[dict[str, Any], ...]
    count: int
    overflow_field: str | None = None
    absent: tuple[int, ...] = ()


class Reads(str, Enum):
    """The reads of a task: what must be unchanged when its result is published.

    `group`: all of its file group, also the absence of keys. `files`: the files that it removes. `nothing`.
    """

    GROUP = "group"
    FILES = "files"
    NOTHING = "nothing"


class CommitMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of one file group's task. `counts` and `quarantined` are keyed by the write's number in the group.

    `changelog`: in feed order. Files of `added` may be among them, with rows that are all new; then all are. Other
    messages of the commit may have the same file; then it is the only one. `first_change`: the row in it at which the
    changes of this file group begin. `lateness`: of the rows, where the dataset has a watermark. `valid_until`: the
    latest time of a commit with this result, since a tombstone that rows were compared with ends then; None for any.
    """

    file_group: str
    reads: Reads = Reads.GROUP
    removed: tuple[str, ...] = ()
    added: tuple[DataFile, ...] = ()
    changelog: tuple[ChangelogFile, ...] = ()
    first_change: int = 0
    counts: dict[int, RowCounts] = {}
    conflicts: tuple[KeyConflict, ...] = ()
    quarantined: dict[int, tuple[QuarantineFile, ...]] = {}
    lateness: Lateness | None = None
    valid_until: datetime | None = None


def changelog_of(messages: Iterable[CommitMessage]) -> list[ChangelogFile]:
    """The changelog files of a commit, each once, in the order of the messages."""
    return list({file.path: file for message in messages for file in message.changelog}.values())


def removed_of(messages: Iterable[CommitMessage]) -> list[str]:
    """The paths that a commit removes. Those that the parts of a file group that is halved remove together are in it
    once.
    """
    paths: list[str] = []
    by_parts: set[str] = set()
    for message in messages:
        paths += [path for path in message.removed if path not in by_parts]
        if halved_slot(message.file_group) is not None:
            by_parts.update(message.removed)
    return paths


def failed_writes(messages: list[CommitMessage]) -> dict[int, list[KeyConflict]]:
    """The grouped writes that are certain to fail, with their conflicts.

    A write whose only conflicts are with failed writes may still succeed: it is not in the result, and the caller
    merges again without the failed writes. The earliest conflicting write is always in the result.
    """
    conflicts: dict[int, list[KeyConflict]] = {}
    for message in messages:
        for conflict in message.conflicts:
            conflicts.setdefault(conflict.job, []).append(conflict)
    suspects = set(conflicts)
    return {
        job: of_job
        for job, of_job in conflicts.items()
        if any(not suspects.intersection(conflict.other_jobs) for conflict in of_job)
    }
