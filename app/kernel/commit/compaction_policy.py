"""Due compactions: applies a dataset's compaction policy to the shapes of its file groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from app.kernel.commit.small_files import small_below
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.policies import CompactionPolicy

_TOMBSTONE_SECONDS_MIN: Final = 86_400
"""The least age of a tombstone file that makes a compaction due: those of tombstones that last shorter are few then."""


class GroupShape(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a file group. Postponed writes count as logs.

    `oldest_log`: the version that committed the oldest of them. `oldest_tombstones`: when the oldest of its tombstone
    files was written. `deleted_rows`: rows of base files that deletion
    vectors delete. `small_files`: base files far below the target size, in the bucket of the group that has most of
    them, or tombstone files, if these are more; without a key, in the group's partition, or 0 if the group itself has
    no small file.
    """

    file_group: str
    logs: int = 0
    log_bytes: int = 0
    oldest_log: int | None = None
    oldest_tombstones: datetime | None = None
    base_bytes: int = 0
    base_rows: int = 0
    deleted_rows: int = 0
    small_files: int = 0


Times = Mapping[int, datetime]
"""The commit times of the versions of some groups' oldest logs."""


def is_due(
    policy: CompactionPolicy, dataset: DatasetDefinition, shape: GroupShape, times: Times, now: datetime
) -> bool:
    """Whether any limit of the policy is reached, or a tombstone file is so old that its tombstones have ended.

    Ratios count only if the files to compact are not small. Otherwise a table of a few rows would be compacted all the
    time.
    """
    worth = small_below(dataset)
    deleted_bytes = shape.base_bytes * shape.deleted_rows / max(shape.base_rows, 1)
    due_at = _due_at(policy, dataset, shape, times)
    return (
        (policy.logs is not None and shape.logs >= policy.logs)
        or (
            policy.log_ratio is not None
            and shape.log_bytes >= max(worth, policy.log_ratio * shape.base_bytes)
        )
        or (
            policy.deleted_ratio is not None
            and deleted_bytes >= max(worth, policy.deleted_ratio * shape.base_bytes)
        )
        or (policy.small_files is not None and shape.small_files >= policy.small_files)
        or (due_at is not None and due_at <= now)
    )


def next_due_at(
    policy: CompactionPolicy, dataset: DatasetDefinition, shapes: Iterable[GroupShape], times: Times
) -> datetime | None:
    """The time at which the first of the groups becomes due without further writes; None if no group will."""
    return min(
        (at for shape in shapes if (at := _due_at(policy, dataset, shape, times)) is not None), default=None
    )


def _due_at(
    policy: CompactionPolicy, dataset: DatasetDefinition, shape: GroupShape, times: Times
) -> datetime | None:
    """The time at which its oldest log or tombstone file reaches the age limit.

    The tombstones of a file are at most as old as the file, but may have been left when the dataset kept them longer.
    Then they are in a new file after the compaction, which reaches the limit as late as any other.
    """
    limits = []
    if policy.seconds is not None and shape.oldest_log is not None and shape.oldest_log in times:
        limits.append(times[shape.oldest_log] + timedelta(seconds=policy.seconds))
    if shape.oldest_tombstones is not None:
        seconds = max(dataset.keep_seconds, _TOMBSTONE_SECONDS_MIN)
        limits.append(shape.oldest_tombstones + timedelta(seconds=seconds))
    return min(limits, default=None)
