"""The plan of a compaction: which files it folds, and into which file groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from app.commit.read_plan import in_globs
from app.commit.write_plan import MergeTask
from app.format.clustering import policy_mark
from app.format.dataset import DatasetDefinition
from app.format.file_group import DataFile, FileKind, append_file_group, bucket_slot
from app.format.rows.staging import Slot

_SMALL_SHARE: Final = 4


def small_below(dataset: DatasetDefinition) -> int:
    """The bytes that a file has at least that is not small."""
    return -(-dataset.target_bytes // _SMALL_SHARE)


def is_small(dataset: DatasetDefinition, file: DataFile) -> bool:
    """Whether the file is to take more rows: far from the size at which the next one is begun."""
    return file.size_bytes < small_below(dataset)


def plan_compaction(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    *,
    partitions: Sequence[str] | None = None,
    file_groups: Collection[str] | None = None,
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """One task per file group with something to fold; without a key per partition, by as much as makes a file.

    A group with logs or postponed writes is folded as a whole, since those may touch any of its rows. Otherwise it is
    the files with deletion vectors, and small ones where there are several of a bucket: what has its size stays as it
    is. Rows without a key go to a new group, from whichever groups of their partition.

    `live`: all files of the groups that it is about, or of the table. `partitions`: globs, of which a file's must match
    one; None for all. `file_groups`: those to look at, None for all.
    """
    about = [
        file
        for file in sorted(live, key=lambda file: (file.added_version or 0, file.path))
        if file_groups is None or file.file_group in file_groups
    ]
    plan = partial(_by_group, dataset) if dataset.keyed else partial(_by_partition, dataset, attempt)
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
        )
        for group, slot, files in plan(about, partitions)
    ]


_PlannedGroups = Iterator[tuple[str, Slot, Sequence[DataFile]]]
"""File groups with their slots, and what is folded into them."""


def _by_group(
    dataset: DatasetDefinition, files: Sequence[DataFile], partitions: Sequence[str] | None
) -> _PlannedGroups:
    groups: dict[str, list[DataFile]] = {}
    for file in files:
        groups.setdefault(file.file_group, []).append(file)
    for group, candidates in sorted(groups.items()):
        matching = [file for file in candidates if _in_partitions(file, partitions)]
        pending = any(file.kind is not FileKind.BASE for file in matching)
        folded = candidates if pending else _worthwhile(dataset, matching)
        if folded:
            yield group, bucket_slot(group), folded


def _in_partitions(file: DataFile, partitions: Sequence[str] | None) -> bool:
    path = file.slot.partition_path
    # Logs of groups that hold several partitions lie in none.
    return partitions is None or (not path and file.kind is not FileKind.BASE) or in_globs(path, partitions)


def _worthwhile(dataset: DatasetDefinition, files: Sequence[DataFile]) -> list[DataFile]:
    """The base files with deletion vectors, and the small ones that share their bucket with another of these.

    Those that stand in the order of the dataset's policy are put together by a clustering, which keeps them in order.
    """
    mark = policy_mark(dataset)
    chosen = [
        file
        for file in files
        if file.deletion_vector or (is_small(dataset, file) and (mark is None or file.clustered_by != mark))
    ]
    sharing = Counter(file.slot for file in chosen)
    return [file for file in chosen if file.deletion_vector or sharing[file.slot] > 1]


def _by_partition(
    dataset: DatasetDefinition, attempt: str, files: Sequence[DataFile], partitions: Sequence[str] | None
) -> _PlannedGroups:
    found: dict[Slot, list[DataFile]] = {}
    for file in files:
        if _in_partitions(file, partitions):
            found.setdefault(file.slot, []).append(file)
    for slot, candidates in sorted(found.items()):
        packs = (_worthwhile(dataset, pack) for pack in _packed(dataset, _worthwhile(dataset, candidates)))
        for number, pack in enumerate(filter(None, packs)):
            yield append_file_group(slot, f"{attempt}-{number}" if number else attempt), slot, pack


def _packed(dataset: DatasetDefinition, files: Sequence[DataFile]) -> Iterator[list[DataFile]]:
    """The files in order, by as much as makes a file: each pack is a task, and these run at once."""
    pack: list[DataFile] = []
    size_bytes = 0
    for file in files:
        pack.append(file)
        size_bytes += file.size_bytes
        if size_bytes >= dataset.target_bytes:
            yield pack
            pack, size_bytes = [], 0
    yield pack
