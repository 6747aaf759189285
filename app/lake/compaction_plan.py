"""The plan of a compaction: which file groups it folds."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from typing import Final

from app.lake.dataset import DatasetDefinition
from app.lake.file_group import DataFile, FileKind, bucket_slot
from app.lake.staging import Slot
from app.lake.write_plan import MergeTask

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
    done: Container[str] = frozenset(),
    attempt: str,
    data_prefix: str,
) -> list[MergeTask]:
    """One task per file group with something to fold, but for the groups that are `done`. `live`: all files."""
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(live, key=lambda file: (file.added_version or 0, file.path)):
        groups.setdefault(file.file_group, []).append(file)
    return [
        MergeTask(
            dataset=dataset,
            slot=_slot(dataset, group, files),
            file_group=group,
            files=tuple(files),
            segments=(),
            intents={},
            attempt=attempt,
            data_prefix=data_prefix,
            compact=True,
        )
        for group, files in sorted(groups.items())
        if group not in done and _is_worthwhile(dataset, files)
    ]


def _is_worthwhile(dataset: DatasetDefinition, files: Sequence[DataFile]) -> bool:
    """Whether there is a log, a postponed write or a deletion vector, or several files small enough to be one."""
    slots = [file.slot for file in files if is_small(dataset, file)]
    unfolded = any(file.kind is not FileKind.BASE or file.deletion_vector for file in files)
    return unfolded or len(slots) > len(set(slots))


def _slot(dataset: DatasetDefinition, group: str, files: Sequence[DataFile]) -> Slot:
    return bucket_slot(group) if dataset.keyed else files[0].slot
