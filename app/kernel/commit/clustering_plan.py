"""The plan of a clustering: the files whose rows it orders, and the file groups they go to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from app.kernel.commit.read_plan import in_globs
from app.kernel.commit.write_plan import MergeTask
from app.kernel.format.clustering import ClusterBy
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.file_group import (
    DataFile,
    FileKind,
    Slot,
    append_file_group,
    bucket_slot,
    partition_of,
    readable_files,
)

# The bytes of rows without a key that are ordered together. The more, the fewer row groups contain a value.
TOGETHER_BYTES_MAX: Final = 1024 * 1024 * 1024

_PlannedGroups = Iterator[tuple[str, Slot, Sequence[DataFile]]]
"""File groups with their slots, and the files whose rows are ordered there."""


def plan_clustering(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    by: ClusterBy,
    *,
    partitions: Sequence[str] | None = None,
    file_groups: Collection[str] | None = None,
    attempt: str,
    data_prefix: str,
    planned_at: datetime | None = None,
) -> list[MergeTask]:
    """One task per file group with unordered files. Without a key, tasks per partition, each of limited size.

    A group with logs is clustered as a whole, since the logs may change any of its rows. Otherwise ordered files stay
    until half as many unordered bytes exist beside them: then all are rewritten into one order. So a row is rewritten
    each time that the file around it grows by half, and there are few ordered runs side by side, each more than twice
    as large as the next. Rows without a key go to a new group, from any group of their partition.

    `live`: all files of the groups to consider, or of the table. `partitions`: globs, one of which must match a file's
    partition; None for all. `file_groups`: those to order, None for all.
    """
    mark = by.mark(dataset.schema)
    groups = _movable(
        dataset, [file for file in live if _requested(dataset, file, mark, file_groups)], partitions
    )
    work = _by_group(groups, mark) if dataset.keyed else _by_partition(groups, mark, attempt)
    return [
        MergeTask(
            dataset=dataset,
            slot=slot,
            file_group=group,
            files=tuple(sorted(files, key=lambda file: (file.added_version or 0, file.path))),
            segments=(),
            intents={},
            attempt=attempt,
            data_prefix=data_prefix,
            compact=True,
            cluster=by,
            planned_at=planned_at,
        )
        for group, slot, files in work
    ]


class UnorderedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A file group with bytes of unordered files. `logs`: whether some of the files are logs."""

    file_group: str
    size_bytes: int
    logs: bool


def due_groups(dataset: DatasetDefinition, groups: Iterable[UnorderedGroup], bytes_min: int) -> list[str]:
    """The groups with at least `bytes_min` unordered bytes; without a key the bytes of a partition are added up."""
    waits = dataset.changelog.producer is ChangelogProducer.DEFERRED
    groups_by_name: dict[str, list[UnorderedGroup]] = {}
    for group in groups:
        if not (waits and group.logs):
            name = group.file_group if dataset.keyed else partition_of(group.file_group)
            groups_by_name.setdefault(name, []).append(group)
    return sorted(
        group.file_group
        for together in groups_by_name.values()
        for group in together
        if sum(each.size_bytes for each in together) >= bytes_min
    )


def _movable(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    partitions: Sequence[str] | None,
) -> Mapping[str, Sequence[DataFile]]:
    """The files of each group that can be rewritten without a change in the feed.

    Postponed writes stay, because no reader sees them yet, and so do tombstones where no log is merged. Logs whose
    changes are emitted when they are compacted stay, with their group, until a compaction.
    """
    groups: dict[str, list[DataFile]] = {}
    for file in live:
        groups.setdefault(file.file_group, []).append(file)
    waits = dataset.changelog.producer is ChangelogProducer.DEFERRED
    movable = {}
    for name, group in groups.items():
        files = readable_files(group)
        if not any(file.kind is FileKind.LOG for file in files):
            files = [file for file in files if _in_partitions(file, partitions)]
        elif waits or not any(_in_partitions(file, partitions) for file in files):
            continue
        movable[name] = files
    return movable


def _requested(
    dataset: DatasetDefinition, file: DataFile, mark: str, file_groups: Collection[str] | None
) -> bool:
    # Ordered files may be merged into the new order too, also from other groups of the partition.
    joins = not dataset.keyed and file.clustered_by == mark
    return file_groups is None or file.file_group in file_groups or joins


def _in_partitions(file: DataFile, partitions: Sequence[str] | None) -> bool:
    return partitions is None or in_globs(file.slot.partition_path, partitions)


def _by_group(groups: Mapping[str, Sequence[DataFile]], mark: str) -> _PlannedGroups:
    for name, files in sorted(groups.items()):
        logs = any(file.kind is FileKind.LOG for file in files)
        to_rewrite = files if logs else _worthwhile(files, mark)
        if to_rewrite:
            yield name, bucket_slot(name), to_rewrite


def _by_partition(groups: Mapping[str, Sequence[DataFile]], mark: str, attempt: str) -> _PlannedGroups:
    partitions: dict[Slot, list[DataFile]] = {}
    for name in sorted(groups):
        for file in groups[name]:
            partitions.setdefault(file.slot, []).append(file)
    for slot, files in sorted(partitions.items()):
        for number, pack in enumerate(_packs(_worthwhile(files, mark))):
            yield append_file_group(slot, f"{attempt}-{number}" if number else attempt), slot, pack


def _worthwhile(files: Sequence[DataFile], mark: str) -> list[DataFile]:
    """The unordered files, and the ordered files up to twice their size, the smallest first."""
    to_rewrite = [file for file in files if file.clustered_by != mark]
    if not to_rewrite:
        return []
    size_bytes = _bytes(to_rewrite)
    # The files of one task are in one order.
    orders: dict[tuple[int, str], list[DataFile]] = {}
    for file in files:
        if file.clustered_by == mark:
            orders.setdefault((file.written_version or 0, file.file_group), []).append(file)
    for _, ordered_files in sorted(orders.items(), key=lambda item: (_bytes(item[1]), item[0])):
        if _bytes(ordered_files) > min(2 * size_bytes, TOGETHER_BYTES_MAX // 2):
            break
        to_rewrite += ordered_files
        size_bytes += _bytes(ordered_files)
    return to_rewrite


def _packs(files: Iterable[DataFile]) -> Iterator[list[DataFile]]:
    """The files in the order of their commits, in packs that are ordered together."""
    pack: list[DataFile] = []
    size_bytes = 0
    for file in sorted(files, key=lambda file: (file.added_version or 0, file.path)):
        if pack and size_bytes + file.size_bytes > TOGETHER_BYTES_MAX:
            yield pack
            pack, size_bytes = [], 0
        pack.append(file)
        size_bytes += file.size_bytes
    if pack:
        yield pack


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.size_bytes for file in files)
