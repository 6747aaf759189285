"""The plan of a clustering: which file groups it orders, and which of them together."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from app.lake.clustering import ClusterBy
from app.lake.commit_message import CommitMessage
from app.lake.dataset import ChangelogProducer, DatasetDefinition
from app.lake.file_group import DataFile, FileKind, append_file_group, bucket_slot
from app.lake.partition import matches_partition_glob
from app.lake.staging import Slot
from app.lake.write_plan import MergeTask

# Groups without a key are ordered so many bytes of files together: the more, the less of a range is in each row group.
TOGETHER_BYTES_MAX: Final = 1024 * 1024 * 1024

_Groups = Mapping[str, Sequence[DataFile]]
_Work = tuple[Slot, str, Sequence[DataFile]]


def plan_clustering(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    by: ClusterBy,
    *,
    partitions: Sequence[str] | None = None,
    file_groups: Container[str] | None = None,
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """The tasks that order what is not ordered so yet. `live`: all files.

    `partitions`: globs of which one must match a partition that the group is in. `file_groups`: only these. Groups of
    keys stay what they are. Without a key those of a partition become one, along with earlier results that are not
    larger than what they join: so a row is written anew each time its group doubles, at most.
    """
    mark = by.mark(dataset.schema)
    groups = {
        name: files
        for name, files in _foldable(dataset, live).items()
        if partitions is None or any(_in_globs(file, partitions) for file in files)
    }
    wanted = {
        name: files
        for name, files in groups.items()
        if unordered_bytes(files, mark) and (file_groups is None or name in file_groups)
    }
    if dataset.keyed:
        work: Iterable[_Work] = [(bucket_slot(name), name, files) for name, files in sorted(wanted.items())]
    else:
        work = _together(groups, wanted, mark, attempt)
    return [
        MergeTask(
            dataset=dataset,
            slot=slot,
            file_group=name,
            files=tuple(sorted(files, key=lambda file: (file.added_version or 0, file.path))),
            segments=(),
            intents={},
            attempt=attempt,
            data_prefix=data_prefix,
            compact=True,
            cluster=by,
        )
        for slot, name, files in work
    ]


def due_groups(
    dataset: DatasetDefinition, live: Iterable[DataFile], by: ClusterBy, bytes_min: int
) -> list[str]:
    """The groups with so many bytes that are not ordered so; without a key, all of a partition that has, together."""
    mark = by.mark(dataset.schema)
    sizes = {name: unordered_bytes(files, mark) for name, files in _foldable(dataset, live).items()}
    if dataset.keyed:
        return sorted(name for name, size in sizes.items() if size >= max(bytes_min, 1))
    partitions: dict[str, int] = {}
    for name, size in sizes.items():
        path = name.rpartition("/")[0]
        partitions[path] = partitions.get(path, 0) + size
    return sorted(
        name for name, size in sizes.items() if size and partitions[name.rpartition("/")[0]] >= bytes_min
    )


def unordered_bytes(files: Iterable[DataFile], mark: str) -> int:
    """Bytes of the files of a group that do not stand in the order with this mark."""
    return sum(file.size_bytes for file in files if file.clustered_by != mark)


def source_groups(task: MergeTask) -> tuple[str, ...]:
    """The groups that a task takes rows from: its own, or those that become one."""
    return tuple(sorted({file.file_group for file in task.files}))


def messages_of(task: MergeTask, message: CommitMessage) -> list[CommitMessage]:
    """The message of a task, as one for each group that it changes: a conflict is found by those."""
    owners = {file.path: file.file_group for file in task.files}
    removed: dict[str, list[str]] = {task.file_group: []}
    for path in message.removed:
        removed.setdefault(owners[path], []).append(path)
    own = msgspec.structs.replace(message, removed=tuple(removed.pop(task.file_group)))
    return [
        own,
        *(CommitMessage(file_group=name, removed=tuple(paths)) for name, paths in sorted(removed.items())),
    ]


def _foldable(dataset: DatasetDefinition, live: Iterable[DataFile]) -> dict[str, list[DataFile]]:
    """The files of each group that can be written anew without telling a change.

    Postponed writes stay where they are, and nobody sees them. Logs that are told of when they are folded wait, with
    their group, for a compaction.
    """
    groups: dict[str, list[DataFile]] = {}
    for file in live:
        if file.kind is not FileKind.POSTPONED:
            groups.setdefault(file.file_group, []).append(file)
    if dataset.changelog.producer is not ChangelogProducer.DEFERRED:
        return groups
    return {
        name: files for name, files in groups.items() if all(file.kind is FileKind.BASE for file in files)
    }


def _in_globs(file: DataFile, globs: Sequence[str]) -> bool:
    return any(matches_partition_glob(file.slot.partition_path, glob) for glob in globs)


def _together(groups: _Groups, wanted: _Groups, mark: str, attempt: str) -> Iterator[_Work]:
    """The wanted groups of each partition, and ordered ones that are not larger, in packs."""
    partitions: dict[Slot, list[str]] = {}
    for name in sorted(groups):
        partitions.setdefault(groups[name][0].slot, []).append(name)
    for slot, names in sorted(partitions.items()):
        taken = [name for name in names if name in wanted]
        if not taken:
            continue
        size = sum(_bytes(groups[name]) for name in taken)
        for name in sorted(names, key=lambda name: (_bytes(groups[name]), name)):
            more = _bytes(groups[name])
            if unordered_bytes(groups[name], mark) == 0 and more <= min(size, TOGETHER_BYTES_MAX // 2):
                taken.append(name)
                size += more
        for number, files in enumerate(_packs([groups[name] for name in taken])):
            own = f"{attempt}-{number}" if number else attempt
            yield slot, append_file_group(slot, own), files


def _packs(groups: Iterable[Sequence[DataFile]]) -> Iterator[list[DataFile]]:
    """Groups in the order of their commits, so many together as are ordered at once."""
    pack: list[DataFile] = []
    for files in sorted(groups, key=lambda files: (files[0].added_version or 0, files[0].path)):
        if pack and _bytes(pack) + _bytes(files) > TOGETHER_BYTES_MAX:
            yield pack
            pack = []
        pack = [*pack, *files]
    if pack:
        yield pack


def _bytes(files: Iterable[DataFile]) -> int:
    return sum(file.size_bytes for file in files)
