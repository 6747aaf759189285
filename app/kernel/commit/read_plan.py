"""The plan of a read: the file groups of a version, and their row ranges, that may contain requested rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from app.kernel.commit.write_plan import WriteScope, reaches
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.file_group import DataFile, FileKind, readable_files
from app.kernel.format.partition.fields import parse_partition
from app.kernel.format.partition.globs import matches_partition_glob
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.sql.conditions.prune import may_match
from app.kernel.sql.conditions.tree import Filter

RowRange = tuple[int, int | None]
"""Live rows [first, end) of a file group, by number; None is the end of the group."""


class GroupScan(msgspec.Struct, frozen=True, kw_only=True):
    """A file group with its files in the order of their commits, and the row ranges to read, in order."""

    file_group: str
    files: tuple[DataFile, ...]
    row_ranges: tuple[RowRange, ...]


def plan_read(
    dataset: DatasetDefinition,
    live: Iterable[DataFile],
    *,
    where: Filter | None = None,
    partitions: Sequence[str] | None = None,
) -> list[GroupScan]:
    """The groups to read, by name, from a version's `live` files. Groups that certainly have no requested row are
    omitted.

    `partitions`: globs, one of which must match the row's partition; any if None. Postponed writes are not rows yet.
    """
    groups: dict[str, list[DataFile]] = {}
    for file in sorted(live, key=lambda file: (file.added_version or 0, file.path)):
        groups.setdefault(file.file_group, []).append(file)
    readable = {name: readable_files(files) for name, files in groups.items()}
    paths = None
    if partitions is not None:
        found_paths = {file.slot.partition_path for files in readable.values() for file in files}
        paths = tuple(path for path in found_paths if in_globs(path, partitions))
    scope = WriteScope(partitions=paths, where=where)
    scans = []
    for name, files in sorted(readable.items()):
        row_ranges = tuple(_row_ranges(scope, dataset, files))
        if row_ranges:
            scans.append(GroupScan(file_group=name, files=tuple(files), row_ranges=row_ranges))
    return scans


def files_to_read(dataset: DatasetDefinition, live: Iterable[DataFile], where: Filter | None) -> set[str]:
    """The paths of the files that a read with this filter opens, of file groups whose `live` files are all given."""
    groups: dict[str, list[DataFile]] = {}
    for file in live:
        groups.setdefault(file.file_group, []).append(file)
    scope = WriteScope(where=where)
    paths = set()
    for files in map(readable_files, groups.values()):
        reached = [file for file in files if reaches(scope, dataset, file)]
        # Rows in logs are known after the merge with all other files of the group.
        merged = reached and any(file.kind is FileKind.LOG for file in files)
        paths |= {file.path for file in (files if merged else reached)}
    return paths


def prunes_partitions(
    dataset: DatasetDefinition, *, where: Filter | None, globs: Sequence[str] | None
) -> bool:
    """Whether a selection of rows may exclude whole partitions."""
    if not dataset.partition_by or dataset.bucket.mode is BucketMode.KEY_DYNAMIC:
        # A file group belongs to no partition, or may have rows of several.
        return False
    columns = set() if where is None else where.columns()
    return globs is not None or any(parse_partition(text).path[0] in columns for text in dataset.partition_by)


def reaches_partition(
    dataset: DatasetDefinition, path: str, *, where: Filter | None, globs: Sequence[str] | None
) -> bool:
    """Whether the partition may have selected rows: false only if it certainly has none."""
    if globs is not None and not in_globs(path, globs):
        return False
    bounds = partition_statistics(path, dataset.partition_by, dataset.schema)
    return where is None or may_match(where, bounds, dataset.schema, 1)


def in_globs(path: str, globs: Sequence[str]) -> bool:
    """Whether one of the globs matches the partition path."""
    return any(matches_partition_glob(path, glob) for glob in globs)


def _row_ranges(
    scope: WriteScope, dataset: DatasetDefinition, files: Sequence[DataFile]
) -> Iterator[RowRange]:
    if any(file.kind is FileKind.LOG for file in files):
        # The position of a row in a merged group is only known after the merge.
        if any(reaches(scope, dataset, file) for file in files):
            yield 0, None
        return
    first = end = 0
    for file in files:
        if reaches(scope, dataset, file):
            end += file.live_rows
            continue
        if end > first:
            yield first, end
        first = end = end + file.live_rows
    if end > first:
        yield first, end
