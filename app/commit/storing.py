"""How what a write does to a file group is stored: the dataset and the write decide."""

from __future__ import annotations

from enum import Enum

from app.format.dataset import BucketMode, DatasetDefinition, TableType


class Storing(str, Enum):
    """`append`: rows without a key go to new files. `rewrite`: files with old rows are written anew. `mark`: new rows
    go to new files, and deletion vectors take out the old ones. `log`: rows are kept as they came, to be merged on
    read. `postpone`: they are kept unseen, until compaction gives them a bucket.
    """

    APPEND = "append"
    REWRITE = "rewrite"
    MARK = "mark"
    LOG = "log"
    POSTPONE = "postpone"


def storing_of(dataset: DatasetDefinition, *, scoped: bool, pending: bool, compact: bool = False) -> Storing:
    """`scoped`: the write takes out rows that it does not name by key. `pending`: the group has logs, or postponed
    writes. `compact`: it is no write, but a compaction.
    """
    if compact or (scoped and pending):
        return Storing.REWRITE
    if not scoped:
        if dataset.bucket.mode is BucketMode.POSTPONE and not dataset.bucket.fixed_now:
            return Storing.POSTPONE
        if not dataset.keyed:
            return Storing.APPEND
        if not dataset.looks_up:
            return Storing.LOG
    if dataset.table_type is TableType.MERGE_ON_READ and dataset.looks_up:
        return Storing.MARK
    return Storing.REWRITE
