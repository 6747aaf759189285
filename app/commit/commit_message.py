"""What a merge task hands back: the files it wrote and what became of each write's rows."""

from __future__ import annotations

from enum import Enum
from typing import Any

import msgspec

from app.format.file_group import ChangelogFile, DataFile
from app.format.instant import RowCounts
from app.format.quarantine import QuarantineFile


class KeyConflict(msgspec.Struct, frozen=True, kw_only=True):
    """An insert of grouped write `job` met live keys, or its rows brought sums out of the range of a field.

    `blamed` holds the grouped writes whose rows were in the way; -1 stands for the table itself. `keys` names a few of
    the keys, `count` says how many there are. `overflowed`: the field whose sum does not fit, None for live keys.
    """

    job: int
    blamed: tuple[int, ...]
    keys: tuple[dict[str, Any], ...]
    count: int
    overflowed: str | None = None


class Reads(str, Enum):
    """What a task's result rests on, and must therefore be as it was when it is published.

    `group`: all of its file group, also what was not there. `files`: the files that it removes. `nothing`.
    """

    GROUP = "group"
    FILES = "files"
    NOTHING = "nothing"


class CommitMessage(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of one file group's task. `counts` and `quarantined` are keyed by the write's number in the group."""

    file_group: str
    reads: Reads = Reads.GROUP
    removed: tuple[str, ...] = ()
    added: tuple[DataFile, ...] = ()
    changelog: tuple[ChangelogFile, ...] = ()
    counts: dict[int, RowCounts] = {}
    conflicts: tuple[KeyConflict, ...] = ()
    quarantined: dict[int, tuple[QuarantineFile, ...]] = {}


def failed_writes(messages: list[CommitMessage]) -> dict[int, list[KeyConflict]]:
    """The grouped writes that fail for certain, with their conflicts.

    A write whose keys were taken by rows of a write that fails itself may yet succeed: it is not in the result,
    and the caller merges again without the failed ones. The earliest conflicting write always is in it.
    """
    conflicts: dict[int, list[KeyConflict]] = {}
    for message in messages:
        for conflict in message.conflicts:
            conflicts.setdefault(conflict.job, []).append(conflict)
    suspects = set(conflicts)
    return {
        job: found
        for job, found in conflicts.items()
        if any(not suspects.intersection(conflict.blamed) for conflict in found)
    }
