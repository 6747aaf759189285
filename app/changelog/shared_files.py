"""Changelog files that several file groups of a partition share, in work that is divided by key.

All changes of a key are in one file group. Where groups share files, a partition is divided into shares instead, each
with some of the buckets: a share has its own groups' files and all shared files, of which it takes its own changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import pyarrow as pa

from app.format.dataset import DatasetDefinition
from app.format.file_group import ChangelogSegment, bucket_slot, is_shared, partition_of
from app.format.rows.record_key import bucket_numbers

SHARES_MAX: Final = 16
"""The most shares of a partition: each reads all of its shared files."""


def sharing_partitions(segments: Iterable[ChangelogSegment]) -> frozenset[str]:
    """The partitions with changelog files of several file groups."""
    groups = (segment.file.file_group for segment in segments)
    return frozenset(partition_of(group) for group in groups if is_shared(group))


def unit_of(file_group: str, sharing: frozenset[str]) -> str:
    """The smallest part of a table with all changes of its keys: a file group, or a partition whose groups share."""
    partition = partition_of(file_group)
    return partition if partition in sharing else file_group


def changes_by_unit(segments: Sequence[ChangelogSegment]) -> list[list[ChangelogSegment]]:
    """The segments of each unit in their order, the units by name."""
    sharing = sharing_partitions(segments)
    units: dict[str, list[ChangelogSegment]] = {}
    for segment in segments:
        units.setdefault(unit_of(segment.file.file_group, sharing), []).append(segment)
    return [units[name] for name in sorted(units)]


def is_of_share(file_group: str, share: int, shares: int) -> bool:
    """Whether a share has changes in the changelog files with this file group."""
    return shares == 1 or is_shared(file_group) or bucket_slot(file_group).bucket % shares == share


def own_changes(
    changes: pa.Table,
    segments: Iterable[ChangelogSegment],
    dataset: DatasetDefinition,
    share: int,
    shares: int,
) -> pa.Table:
    """The changes of the share. `changes`: of segments in which the share has changes, with the bucket key."""
    if shares == 1 or not any(is_shared(segment.file.file_group) for segment in segments):
        return changes
    bucket = dataset.bucket
    buckets = bucket_numbers(changes, dataset.bucket_key, bucket.count, bucket.function)
    return changes.filter(pa.array(buckets % shares == share))
