"""The plan of a write: one task per touched file group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.lake.dataset import DatasetDefinition
from app.lake.file_group import DataFile, append_file_group, bucket_file_group
from app.lake.filters.tree import Filter
from app.lake.operation import Operation
from app.lake.staging import Slot, StagedFile


class StagedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Some record batches of one staged file, rows of grouped write `job`."""

    job: int
    file: StagedFile
    batch_indices: tuple[int, ...]

    @property
    def rows(self) -> int:
        return sum(self.file.batches[index].rows for index in self.batch_indices)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which live rows of a table a write takes out without naming their keys, unless its own rows bring them.

    `partitions`: paths, all if None. `where`: a filter, all rows if None. Both must hold.
    """

    partitions: tuple[str, ...] | None = None
    where: Filter | None = None


class WriteIntent(msgspec.Struct, frozen=True, kw_only=True):
    """What a grouped write wants done with its rows.

    `drop_duplicates`: rows of an insert whose key is live are dropped and counted as unchanged. `quarantine`: they are
    set aside.
    """

    operation: Operation
    drop_duplicates: bool = False
    quarantine: bool = False


class MergeTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Everything a task needs to bring one file group up to date; plain values, sent to Spark.

    `slot` is the group's own, `files` are its live files in the order of their commits, `intents` those of the grouped
    writes by number, `scope` (of a write that runs by itself) tells which live rows must go. `compact` folds logs,
    postponed writes and deletion vectors into base files. `attempt` goes into the names of the files the task writes,
    so that no two attempts ever write the same path.
    """

    dataset: DatasetDefinition
    slot: Slot
    file_group: str
    files: tuple[DataFile, ...]
    segments: tuple[StagedSegment, ...]
    intents: dict[int, WriteIntent]
    attempt: str
    data_prefix: str
    scope: Scope | None = None
    compact: bool = False


def touched_slots(writes: Mapping[int, Sequence[StagedFile]]) -> list[Slot]:
    """The slots that the grouped writes touch, in order."""
    return sorted({batch.slot for files in writes.values() for file in files for batch in file.batches})


def file_group(dataset: DatasetDefinition, slot: Slot, attempt: str) -> str:
    """The file group that rows of a slot go to: the bucket's own, or, without a key, one new with every attempt."""
    return bucket_file_group(slot) if dataset.keyed else append_file_group(slot, attempt)


def plan_merge(
    dataset: DatasetDefinition,
    writes: Mapping[int, Sequence[StagedFile]],
    intents: Mapping[int, WriteIntent],
    live: Iterable[DataFile],
    *,
    groups: Mapping[Slot, str],
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """One task per slot of `groups`, which gives its file group. `writes` are numbered in order of acceptance."""
    segments: dict[Slot, list[StagedSegment]] = {}
    for job in sorted(writes):
        for staged in writes[job]:
            batches: dict[Slot, list[int]] = {}
            for batch in staged.batches:
                batches.setdefault(batch.slot, []).append(batch.index)
            for slot, indices in batches.items():
                segment = StagedSegment(job=job, file=staged, batch_indices=tuple(indices))
                segments.setdefault(slot, []).append(segment)
    files: dict[str, list[DataFile]] = {}
    for file in sorted(live, key=lambda file: (file.added_version or 0, file.path)):
        files.setdefault(file.file_group, []).append(file)
    return [
        MergeTask(
            dataset=dataset,
            slot=slot,
            file_group=group,
            files=tuple(files.get(group, ())),
            segments=tuple(segments[slot]),
            intents={segment.job: intents[segment.job] for segment in segments[slot]},
            attempt=attempt,
            data_prefix=data_prefix,
        )
        for slot, group in groups.items()
    ]
