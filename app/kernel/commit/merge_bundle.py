"""Bundles of merge tasks: a few small tasks of one commit run one after another, in one process, and share a changelog
file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Final

import msgspec

from app.kernel.commit.commit_message import CommitMessage
from app.kernel.commit.storing import Storing, storing_of
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.engine_task import EngineTask, Work

# A further process takes more time than it saves for fewer bytes.
_BUNDLE_BYTES_MAX: Final = 4 * 1024 * 1024
# What a lookup of a few keys in a file costs, as bytes that are read.
_LOOKUP_BYTES: Final = 16 * 1024
# A commit with more small tasks is several bundles, which run on several cores. Each has a changelog file.
_BUNDLE_TASKS: Final = 4
_BUNDLES_MAX: Final = 4


class MergedBundle(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """One message for each task of a bundle, in their order."""

    messages: tuple[CommitMessage, ...]
    lookup_seconds: float = 0.0
    """What the look-ups of rows by key took."""


class MergeBundle(EngineTask[MergedBundle], frozen=True, kw_only=True, tag=True):
    """Merge tasks of one dataset and one attempt, in the order of their file groups."""

    tasks: tuple[MergeTask, ...]

    @property
    def work(self) -> Work:
        """Table services run beside writes, and must not take from their share of the cores."""
        return Work.TASKS if any(task.compact for task in self.tasks) else Work.WRITES

    @property
    def size_bytes(self) -> int:
        """The size of its files, and of its share of the staged files."""
        return sum(sum(file.size_bytes for file in task.files) + _incoming_bytes(task) for task in self.tasks)

    @property
    def rows(self) -> int:
        """The staged rows."""
        return sum(segment.rows for task in self.tasks for segment in task.segments)

    @property
    def joins_rounds(self) -> bool:
        """Merges of small writes take milliseconds."""
        return self.work is Work.WRITES


def bundled(tasks: Iterable[MergeTask]) -> list[MergeBundle]:
    """The tasks in their order: those of one commit in few bundles if their work is small, otherwise one by one."""
    bundles: list[MergeBundle] = []
    for _, same in groupby(tasks, key=lambda task: (task.data_prefix, task.attempt)):
        of_commit = tuple(same)
        together = sum(_weight(task) for task in of_commit) <= _BUNDLE_BYTES_MAX
        count = min(-(-len(of_commit) // _BUNDLE_TASKS), _BUNDLES_MAX) if together else len(of_commit)
        bundles += [MergeBundle(tasks=part) for part in _parts(of_commit, count)]
    return bundles


def _parts(tasks: Sequence[MergeTask], count: int) -> Iterator[tuple[MergeTask, ...]]:
    """The tasks in their order, in `count` parts of about the same number."""
    ends = [len(tasks) * number // count for number in range(count + 1)]
    return (tuple(tasks[begin:end]) for begin, end in pairwise(ends))


def _weight(task: MergeTask) -> int:
    """About how many bytes the task reads. A table service, a write with a scope and a part of a group that is halved
    have no such bound.
    """
    if task.compact or task.scope is not None or task.divides:
        return _BUNDLE_BYTES_MAX + 1
    incoming = _incoming_bytes(task)
    pending = any(file.kind.is_pending for file in task.files)
    match storing_of(task.dataset, has_scope=False, pending=pending):
        case Storing.MARK:
            return incoming + _LOOKUP_BYTES * len(task.files)
        case Storing.LOG | Storing.POSTPONE if not _reads_keys(task):
            return incoming
        case Storing.APPEND:
            return incoming
        case _:
            return incoming + sum(file.size_bytes for file in task.files)


def _incoming_bytes(task: MergeTask) -> int:
    """About how many bytes of the staged files the task reads."""
    return sum(
        segment.file.size_bytes * segment.rows // max(segment.file.rows, 1) for segment in task.segments
    )


def _reads_keys(task: MergeTask) -> bool:
    return any(intent.operation.refuses_live_keys for intent in task.intents.values())
