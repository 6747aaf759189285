"""What it takes to check that a feed gives its table, and what is found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

import msgspec

from app.format.dataset import ChangelogProducer, DatasetDefinition
from app.format.errors import NotVerifiable
from app.format.file_group import ChangelogSegment, DataFile, FileKind, partition_of
from app.format.schema.schema import Schema


class DifferenceKind(str, Enum):
    """What is wrong with a key (or, without keys, with a row), or with a change.

    `missing`: the feed makes a row that the table lacks. `unexpected`: the table has a row that the feed does not make.
    `different`: the two have other values. `illegal_change`: a change that does not fit the changes before it.
    """

    MISSING = "missing"
    UNEXPECTED = "unexpected"
    DIFFERENT = "different"
    ILLEGAL_CHANGE = "illegal_change"


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One difference. `offset` and `op`: of the illegal change, else of the last change of the key; None without one.

    `in_feed`: the row that the change tells, or that folding makes; `in_table`: the one that the table has. Both are as
    JSON carries them, None where there is no row.
    """

    kind: DifferenceKind
    key: dict[str, Any]
    offset: int | None
    op: str | None
    in_feed: dict[str, Any] | None
    in_table: dict[str, Any] | None


class FoldTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Fold changes over the rows of `start`, and compare with those of `files`: of all that may hold the same keys.

    `dataset`: under its schema at the version. `start`, `files`: in the order of their commits, by file group.
    `segments`: in the order of their offsets. `schemas`: by id, those that the dataset had by then.
    """

    dataset: DatasetDefinition
    start: tuple[tuple[DataFile, ...], ...]
    files: tuple[tuple[DataFile, ...], ...]
    segments: tuple[ChangelogSegment, ...]
    schemas: dict[int, Schema]


class FoldVerdict(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What a task found: how many rows the table has and how many changes there were, how many differences, and the
    first of these.
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


def earlier(one: Difference | None, other: Difference | None) -> Difference | None:
    """The one that a walk along the feed meets first: illegal changes on its way, other differences once it has made
    the table; those by offset, and last the ones that no change is to blame for.
    """
    if one is None or other is None:
        return one or other
    return other if _place(other) < _place(one) else one


def _place(difference: Difference) -> tuple[bool, bool, int, str]:
    # Where offsets do not tell, the key does, so that the same table always gives the same answer.
    legal = difference.kind is not DifferenceKind.ILLEGAL_CHANGE
    return legal, difference.offset is None, difference.offset or 0, repr(difference.key)


def check_verifiable(dataset: DatasetDefinition) -> None:
    """Raises NotVerifiable for a dataset whose feed does not say what its table holds."""
    match dataset.changelog.producer:
        case ChangelogProducer.NONE:
            raise NotVerifiable("the dataset has no feed: its changelog.producer is 'none'", producer="none")
        case ChangelogProducer.INPUT if dataset.keyed:
            raise NotVerifiable(
                "the feed tells rows as they were given (changelog.producer is 'input'), not what they did to the "
                "table, so folding it does not give the table",
                producer="input",
            )
        case _:
            return


def compared(dataset: DatasetDefinition, files: Iterable[DataFile]) -> list[DataFile]:
    """Those of the live files whose rows the feed has told. With producer `deferred`, logs are told once compacted."""
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
    """Tasks that never share a key: one per file group, or without keys per partition, since rows move within it."""
    starts, ends = _by_unit(dataset, start), _by_unit(dataset, files)
    changes: dict[str, list[ChangelogSegment]] = {}
    for segment in sorted(segments, key=lambda segment: segment.first_offset):
        changes.setdefault(_unit(dataset, segment.file.file_group), []).append(segment)
    return [
        FoldTask(
            dataset=dataset,
            start=_groups(starts.get(unit, ())),
            files=_groups(ends.get(unit, ())),
            segments=tuple(changes.get(unit, ())),
            schemas=schemas,
        )
        for unit in sorted({*starts, *ends, *changes})
    ]


def _unit(dataset: DatasetDefinition, file_group: str) -> str:
    return file_group if dataset.keyed else partition_of(file_group)


def _by_unit(dataset: DatasetDefinition, files: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    found: dict[str, list[DataFile]] = {}
    for file in compared(dataset, files):
        found.setdefault(_unit(dataset, file.file_group), []).append(file)
    return found


def _groups(files: Sequence[DataFile]) -> tuple[tuple[DataFile, ...], ...]:
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
        groups.setdefault(file.file_group, []).append(file)
    return tuple(tuple(group) for _, group in sorted(groups.items()))
