"""The verification of a feed against its table: its tasks and its differences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import msgspec

from app.kernel.changelog.shared_files import is_of_share, shares_of, sharing_partitions, unit_of
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.engine_task import EngineTask
from app.kernel.format.errors import NotVerifiable
from app.kernel.format.file_group import ChangelogSegment, DataFile, FileKind, partition_of, readable_files
from app.kernel.format.schema.schema import Schema


class DifferenceKind(str, Enum):
    """The kind of a difference: of a key (without keys, of a row), or of a change.

    `missing`: the fold has a row that the table lacks. `unexpected`: the table has a row that the fold does not have.
    `different`: the two have other values. `illegal_change`: a change that does not fit the changes before it.
    """

    MISSING = "missing"
    UNEXPECTED = "unexpected"
    DIFFERENT = "different"
    ILLEGAL_CHANGE = "illegal_change"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `offset` and `op`: of the illegal change, else of the last change of the key; None without a
    change.

    `in_feed`: the row of the change, or of the fold. `in_table`: the row of the table. Both are JSON values, None where
    there is no row.
    """

    kind: DifferenceKind
    key: dict[str, Any]
    offset: int | None
    op: str | None
    in_feed: dict[str, Any] | None
    in_table: dict[str, Any] | None


class FoldVerdict(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The result of a task: the number of the table's rows, of the changes, and of the differences, and the first of
    these.
    """

    rows: int = 0
    changes: int = 0
    differences: int = 0
    first: Difference | None = None

    def __add__(self, other: FoldVerdict) -> FoldVerdict:
        return FoldVerdict(
            rows=self.rows + other.rows,
            changes=self.changes + other.changes,
            differences=self.differences + other.differences,
            first=earlier(self.first, other.first),
        )


class FoldTask(EngineTask[FoldVerdict], frozen=True, kw_only=True, tag=True):
    """Folds changes over the rows of `start` and compares the result with `files`: all files that may have the same
    keys.

    `dataset`: under its schema at the version. `start`, `files`: in the order of their commits, by file group.
    `segments`: in the order of their offsets. `schemas`: by id, those of the dataset up to that version. `share`: of
    this number of `shares`, where file groups share changelog files (see `app.kernel.changelog.shared_files`).
    """

    dataset: DatasetDefinition
    start: tuple[tuple[DataFile, ...], ...]
    files: tuple[tuple[DataFile, ...], ...]
    segments: tuple[ChangelogSegment, ...]
    schemas: dict[int, Schema]
    share: int = 0
    shares: int = 1

    @property
    def size_bytes(self) -> int:
        """The size of its files."""
        files = (file for group in (*self.start, *self.files) for file in group)
        return sum(file.size_bytes for file in files) + sum(each.size_bytes for each in self.segments)


def earlier(one: Difference | None, other: Difference | None) -> Difference | None:
    """The earlier of two differences in feed order: illegal changes by offset, then other differences by offset, and
    last those without a change.
    """
    if one is None or other is None:
        return one or other
    return other if _place(other) < _place(one) else one


def _place(difference: Difference) -> tuple[bool, bool, int, str]:
    # For equal offsets the key decides, so that the same table always gives the same result.
    legal = difference.kind is not DifferenceKind.ILLEGAL_CHANGE
    return legal, difference.offset is None, difference.offset or 0, repr(difference.key)


def check_verifiable(dataset: DatasetDefinition) -> None:
    """Raises NotVerifiable for a dataset whose feed does not determine the contents of its table."""
    match dataset.changelog.producer:
        case ChangelogProducer.NONE:
            raise NotVerifiable("the dataset has no feed: its changelog.producer is 'none'", producer="none")
        case ChangelogProducer.INPUT if dataset.keyed:
            raise NotVerifiable(
                "the feed has rows as they were sent (changelog.producer is 'input'), not their effect on the table, "
                "so its fold does not give the table",
                producer="input",
            )
        case _:
            return


def compared(dataset: DatasetDefinition, files: Iterable[DataFile]) -> list[DataFile]:
    """The live files whose rows are in the feed. With producer `deferred`, logs are in the feed once compacted."""
    if dataset.changelog.producer is not ChangelogProducer.DEFERRED:
        return list(files)
    return [file for file in files if file.kind is FileKind.BASE]


def plan_fold(
    dataset: DatasetDefinition,
    start: Iterable[DataFile],
    files: Iterable[DataFile],
    segments: Iterable[ChangelogSegment],
    schemas: dict[int, Schema],
) -> list[FoldTask]:
    """Tasks that never share a key: one per file group; without keys one per partition, since rows move within it.

    Where file groups share changelog files, or buckets were halved, each of a few tasks has some of the keys of a
    partition, and reads all files that may have them.
    """
    segments = list(segments)
    then, now = compared(dataset, start), compared(dataset, files)
    groups = [file.file_group for file in (*then, *now)]
    groups += [segment.file.file_group for segment in segments]
    units = _Units(dataset=dataset, sharing=sharing_partitions(groups), shares=shares_of(dataset, groups))
    starts, ends = units.split(then), units.split(now)
    changes: dict[_Unit, list[ChangelogSegment]] = {}
    for segment in sorted(segments, key=lambda segment: segment.first_offset):
        for unit in units.of(segment.file.file_group):
            changes.setdefault(unit, []).append(segment)
    return [
        FoldTask(
            dataset=dataset,
            start=_groups(starts.get(unit, ())),
            files=_groups(ends.get(unit, ())),
            segments=tuple(changes.get(unit, ())),
            schemas=schemas,
            share=unit[1],
            shares=units.shares if unit[0] in units.sharing else 1,
        )
        for unit in sorted({*starts, *ends, *changes})
    ]


# A file group, or a partition, and which of its buckets.
_Unit = tuple[str, int]


class _Units(msgspec.Struct, frozen=True, kw_only=True):
    """How a table is divided into tasks. `sharing`: the partitions in which a key may be in several file groups."""

    dataset: DatasetDefinition
    sharing: frozenset[str]
    shares: int

    def of(self, file_group: str) -> list[_Unit]:
        """The tasks of a file group, or of a changelog file of several."""
        if not self.dataset.keyed:
            return [(partition_of(file_group), 0)]
        unit = unit_of(file_group, self.sharing)
        if unit == file_group:
            return [(unit, 0)]
        return [(unit, share) for share in range(self.shares) if is_of_share(file_group, share, self.shares)]

    def split(self, files: Iterable[DataFile]) -> dict[_Unit, list[DataFile]]:
        """The files by task."""
        files_by_unit: dict[_Unit, list[DataFile]] = {}
        for file in files:
            for unit in self.of(file.file_group):
                files_by_unit.setdefault(unit, []).append(file)
        return files_by_unit


def _groups(files: Sequence[DataFile]) -> tuple[tuple[DataFile, ...], ...]:
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
        groups.setdefault(file.file_group, []).append(file)
    readable = (readable_files(group) for _, group in sorted(groups.items()))
    return tuple(tuple(files) for files in readable if files)
