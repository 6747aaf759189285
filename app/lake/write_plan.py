"""The plan of a write: one task per touched file group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from app.lake.dataset import DatasetDefinition
from app.lake.file_group import DataFile, append_file_group, bucket_file_group
from app.lake.operation import Operation
from app.lake.staging import Slot, StagedFile


class StagedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Some record batches of one staged file, rows of grouped write `job`."""

    job: int
    file: StagedFile
    batch_indices: tuple[int, ...]


class MergeTask(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Everything a task needs to bring one file group up to date; plain values, sent to Spark.

    `base` is the live base file, `operations` are those of the grouped writes by number, `attempt` goes into the
    names of the files the task writes, so that no two attempts ever write the same path.
    """

    dataset: DatasetDefinition
    slot: Slot
    file_group: str
    base: DataFile | None
    segments: tuple[StagedSegment, ...]
    operations: dict[int, Operation]
    attempt: str
    data_prefix: str


def touched_slots(writes: Mapping[int, Sequence[StagedFile]]) -> list[Slot]:
    """The slots that the grouped writes touch, in order."""
    return sorted({batch.slot for files in writes.values() for file in files for batch in file.batches})


def file_group(dataset: DatasetDefinition, slot: Slot, attempt: str) -> str:
    """The file group that rows of a slot go to: the bucket's own, or, without a key, one new with every attempt."""
    return bucket_file_group(slot) if dataset.keyed else append_file_group(slot, attempt)


def plan_merge(
    dataset: DatasetDefinition,
    writes: Mapping[int, Sequence[StagedFile]],
    operations: Mapping[int, Operation],
    live: Iterable[DataFile],
    *,
    groups: Mapping[Slot, str],
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """One task per slot of `groups`, which gives its file group. `writes` are numbered in order of acceptance."""
    segments: dict[Slot, list[StagedSegment]] = {}
    for job in sorted(writes):
        for file in writes[job]:
            batches: dict[Slot, list[int]] = {}
            for batch in file.batches:
                batches.setdefault(batch.slot, []).append(batch.index)
            for slot, indices in batches.items():
                segment = StagedSegment(job=job, file=file, batch_indices=tuple(indices))
                segments.setdefault(slot, []).append(segment)
    bases = {file.file_group: file for file in live}
    return [
        MergeTask(
            dataset=dataset,
            slot=slot,
            file_group=group,
            base=bases.get(group),
            segments=tuple(segments[slot]),
            operations={segment.job: operations[segment.job] for segment in segments[slot]},
            attempt=attempt,
            data_prefix=data_prefix,
        )
        for slot, group in groups.items()
    ]
