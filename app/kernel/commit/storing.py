"""The form in which a write's effect on a file group is stored; it depends on the dataset and the write."""

from __future__ import annotations

from enum import Enum

from app.kernel.format.dataset import BucketMode, DatasetDefinition, TableType


class Storing(str, Enum):
    """`append`: rows without a key go to new files. `rewrite`: files with old rows are rewritten. `mark`: new rows go
    to new files, and deletion vectors delete the old rows. `log`: rows are stored unmerged, to be merged on read.
    `postpone`: they are stored invisibly, until compaction assigns them a bucket.
    """

    APPEND = "append"
    REWRITE = "rewrite"
    MARK = "mark"
    LOG = "log"
    POSTPONE = "postpone"


def storing_of(
    dataset: DatasetDefinition,
    *,
    has_scope: bool,
    pending: bool,
    compact: bool = False,
    divides: bool = False,
) -> Storing:
    """The form for a file group.

    `has_scope`: the write retracts rows that it does not name by key. `pending`: the group has logs, or postponed
    writes. `compact`: a compaction, not a write. `divides`: the group is a part of one that is halved.
    """
    if compact or divides or (has_scope and pending):
        return Storing.REWRITE
    if not has_scope:
        if dataset.bucket.mode is BucketMode.POSTPONE and not dataset.bucket.fixed_now:
            return Storing.POSTPONE
        if not dataset.keyed:
            return Storing.APPEND
        if not dataset.looks_up:
            return Storing.LOG
    if dataset.table_type is TableType.MERGE_ON_READ and dataset.looks_up:
        return Storing.MARK
    return Storing.REWRITE
