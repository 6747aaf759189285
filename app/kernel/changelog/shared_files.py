"""Work on changes that is divided by key.

All changes of a key are in one file group, unless buckets were halved in between, or file groups of a partition share a
changelog file. Such a partition is divided into shares instead, each with some of the buckets: a share has the files
with changes of its buckets, and takes its own changes from those that also have others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogSegment, bucket_slot, halved_slot, is_shared, partition_of
from app.kernel.format.halving import in_share, overlaps_within
from app.kernel.format.rows.record_key import bucket_numbers

SHARES_MAX: Final = 16
"""The most shares of a partition: each reads all of its shared files."""


def sharing_partitions(file_groups: Iterable[str]) -> frozenset[str]:
    """The partitions in which a key may have changes in several of these file groups, or in shared files."""
    names: dict[str, set[str]] = {}
    for group in file_groups:
        names.setdefault(partition_of(group), set()).add(group)
    return frozenset(path for path, groups in names.items() if _shares(groups))


def _shares(file_groups: Iterable[str]) -> bool:
    names = set(file_groups)
    slots = (slot for name in names if (slot := halved_slot(name)) is not None)
    return any(is_shared(name) for name in names) or overlaps_within(slots)


def shares_of(dataset: DatasetDefinition, file_groups: Iterable[str]) -> int:
    """How many shares a partition with these file groups is divided into."""
    if dataset.bucket.count is not None:
        return min(dataset.bucket.count, SHARES_MAX)
    counts = (slot.of or 1 for name in file_groups if (slot := halved_slot(name)) is not None)
    return min(max(counts, default=1), SHARES_MAX)


def unit_of(file_group: str, sharing: frozenset[str]) -> str:
    """The smallest part of a table with all changes of its keys: a file group, or a partition that is shared."""
    partition = partition_of(file_group)
    return partition if partition in sharing else file_group


def changes_by_unit(segments: Sequence[ChangelogSegment]) -> list[list[ChangelogSegment]]:
    """The segments of each unit in their order, the units by name."""
    sharing = sharing_partitions(segment.file.file_group for segment in segments)
    units: dict[str, list[ChangelogSegment]] = {}
    for segment in segments:
        units.setdefault(unit_of(segment.file.file_group, sharing), []).append(segment)
    return [units[name] for name in sorted(units)]


def is_of_share(file_group: str, share: int, shares: int) -> bool:
    """Whether a share has keys in the files with this file group."""
    if shares == 1 or is_shared(file_group):
        return True
    slot = bucket_slot(file_group)
    return slot.bucket % shares == share if slot.of is None else in_share(slot, share, shares)


def has_others(file_group: str, shares: int) -> bool:
    """Whether the files with this file group also have keys of other shares than one that they are of."""
    slot = halved_slot(file_group)
    return shares > 1 and (is_shared(file_group) or (slot is not None and (slot.of or 1) % shares > 0))


def own_rows(
    rows: pa.Table, file_groups: Iterable[str], dataset: DatasetDefinition, share: int, shares: int
) -> pa.Table:
    """The rows of the share. `rows`: of files with these file groups, which are of the share, with the bucket key."""
    if not any(has_others(group, shares) for group in file_groups):
        return rows
    bucket = dataset.bucket
    buckets = bucket_numbers(rows, dataset.bucket_key, bucket.segments, bucket.function)
    return rows.filter(pa.array(buckets % shares == share))
