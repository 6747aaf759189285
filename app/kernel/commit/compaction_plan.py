"""The plan of a compaction: the files it rewrites, and the file groups they go to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial

from app.kernel.commit.read_plan import in_globs
from app.kernel.commit.small_files import is_small, small_files_to_join
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.clustering import policy_mark
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind, Slot, append_file_group, bucket_slot


def plan_compaction(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    *,
    partitions: Sequence[str] | None = None,
    file_groups: Collection[str] | None = None,
    attempt: str,
    data_prefix: str,
    planned_at: datetime | None = None,
) -> list[MergeTask]:
    """One task per file group with something to compact. Without a key, tasks per partition, each of about one file's
    size.

    A group with logs or postponed writes is rewritten as a whole, since these may change any of its rows. Otherwise
    files with deletion vectors are rewritten, and small files if a bucket has several. Files of full size stay. So
    does a single tombstone file of a bucket without a deletion vector. Rows without a key go to a new group, from any
    group of their partition.

    `live`: all files of the groups to consider, or of the table. `partitions`: globs, one of which must match a file's
    partition; None for all. `file_groups`: those that the policy has selected; None for all. A policy acts again and
    again, so it joins small files by levels, see `small_files_to_join`. `planned_at`: the least time of a later commit;
    None if tombstones are kept whatever their age.
    """
    about = [
        file
        for file in sorted(live, key=lambda file: (file.added_version or 0, file.path))
        if file_groups is None or file.file_group in file_groups
    ]
    choice = partial(_worthwhile, dataset, by_levels=file_groups is not None)
    tombstones = partial(_tombstones, dataset, planned_at)
    plan = (
        partial(_by_group, choice, tombstones)
        if dataset.keyed
        else partial(_by_partition, choice, dataset, attempt)
    )
    return [
        MergeTask(
            dataset=dataset,
            slot=slot,
            file_group=group,
            files=tuple(files),
            segments=(),
            intents={},
            attempt=attempt,
            data_prefix=data_prefix,
            compact=True,
            planned_at=planned_at,
        )
        for group, slot, files in plan(about, partitions)
    ]


_PlannedGroups = Iterator[tuple[str, Slot, Sequence[DataFile]]]
"""File groups with their slots, and the files that are rewritten into them."""


_Choice = Callable[[Sequence[DataFile]], list[DataFile]]


def _by_group(
    choice: _Choice,
    tombstones: _Choice,
    files: Sequence[DataFile],
    partitions: Sequence[str] | None,
) -> _PlannedGroups:
    groups: dict[str, list[DataFile]] = {}
    for file in files:
        groups.setdefault(file.file_group, []).append(file)
    for group, candidates in sorted(groups.items()):
        matching = [file for file in candidates if _in_partitions(file, partitions)]
        pending = any(file.kind.is_pending for file in matching)
        to_rewrite = candidates if pending else [*choice(matching), *tombstones(matching)]
        if to_rewrite:
            yield group, bucket_slot(group), to_rewrite


def _in_partitions(file: DataFile, partitions: Sequence[str] | None) -> bool:
    path = file.slot.partition_path
    # Logs of groups with several partitions have no partition.
    return partitions is None or (not path and file.kind is not FileKind.BASE) or in_globs(path, partitions)


def _worthwhile(dataset: DatasetDefinition, files: Sequence[DataFile], *, by_levels: bool) -> list[DataFile]:
    """The base files with deletion vectors, and small files that share their bucket with another one of these.

    Files in the order of the dataset's policy are merged by a clustering, which keeps the order.
    """
    mark = policy_mark(dataset)
    rewritten = [file for file in files if file.kind.holds_rows and file.deletion_vector]
    small = [
        file
        for file in files
        if file.kind.holds_rows
        and not file.deletion_vector
        and is_small(dataset, file)
        and (mark is None or file.clustered_by != mark)
    ]
    if by_levels:
        small = _of_levels(dataset, rewritten, small)
    chosen = {file.path for file in (*rewritten, *small)}
    return _without_lone([file for file in files if file.path in chosen])


def _of_levels(
    dataset: DatasetDefinition, rewritten: Iterable[DataFile], small: Iterable[DataFile]
) -> list[DataFile]:
    """The small files that are joined in each bucket. At most half as many are left as make a compaction due."""
    rows: Counter[Slot] = Counter()
    for file in rewritten:
        rows[file.slot] += file.live_rows
    by_slot: dict[Slot, list[DataFile]] = {}
    for file in small:
        by_slot.setdefault(file.slot, []).append(file)
    policy = dataset.services.compaction
    files_max = None if policy is None else policy.small_files
    return [
        file
        for slot, files in by_slot.items()
        for file in small_files_to_join(
            files, rows[slot], len(files) if files_max is None else files_max // 2
        )
    ]


def _without_lone(files: Sequence[DataFile]) -> list[DataFile]:
    """The files without those that are rewritten only to be joined, and are alone in their bucket."""
    sharing = Counter(file.slot for file in files)
    return [file for file in files if file.deletion_vector or sharing[file.slot] > 1]


def _tombstones(
    dataset: DatasetDefinition, planned_at: datetime | None, files: Sequence[DataFile]
) -> list[DataFile]:
    """The tombstone files of a group that share their bucket with others, or some of whose tombstones have ended."""
    tombstones = [file for file in files if file.kind is FileKind.TOMBSTONE]
    sharing = Counter(file.slot for file in tombstones)
    kept = timedelta(seconds=dataset.keep_seconds)
    return [
        file
        for file in tombstones
        if sharing[file.slot] > 1
        or file.deletion_vector
        or (planned_at is not None and file.written_at is not None and file.written_at + kept < planned_at)
    ]


def _by_partition(
    choice: _Choice,
    dataset: DatasetDefinition,
    attempt: str,
    files: Sequence[DataFile],
    partitions: Sequence[str] | None,
) -> _PlannedGroups:
    files_by_slot: dict[Slot, list[DataFile]] = {}
    for file in files:
        if _in_partitions(file, partitions):
            files_by_slot.setdefault(file.slot, []).append(file)
    for slot, candidates in sorted(files_by_slot.items()):
        packs = (_without_lone(pack) for pack in _packed(dataset, choice(candidates)))
        for number, pack in enumerate(filter(None, packs)):
            yield append_file_group(slot, f"{attempt}-{number}" if number else attempt), slot, pack


def _packed(dataset: DatasetDefinition, files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """The files in order, in packs of about one file's size: each pack is a task, and the tasks run in parallel."""
    pack: list[DataFile] = []
    size_bytes = 0
    for file in files:
        pack.append(file)
        size_bytes += file.size_bytes
        if size_bytes >= dataset.target_bytes:
            yield pack
            pack, size_bytes = [], 0
    yield pack
