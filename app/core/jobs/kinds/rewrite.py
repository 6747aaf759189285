"""Compactions and clusterings: table services that rewrite file groups."""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TableServiceRequest
from app.kernel.format.instant import Action
from app.kernel.format.policies import ClusterOrder


class CompactionTask(TableServiceRequest, frozen=True, kw_only=True, tag="compaction"):
    """Rewrites logs, postponed writes and small files as base files, without the rows that deletion vectors delete."""

    partitions: tuple[str, ...] | None = None
    """Globs of the partitions to compact; None for all."""
    file_groups: tuple[str, ...] | None = None
    """Groups to compact however little there is to rewrite; None for all groups that the policy selects."""


class ClusteringTask(TableServiceRequest, frozen=True, kw_only=True, tag="clustering"):
    """Orders the rows of file groups by some columns, so that filters on these read few files and row groups.

    `partitions`, `file_groups`: as in a compaction.
    """

    columns: tuple[str, ...]
    order: ClusterOrder = ClusterOrder.LINEAR
    partitions: tuple[str, ...] | None = None
    file_groups: tuple[str, ...] | None = None


RewriteRequest: TypeAlias = CompactionTask | ClusteringTask


class RewriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a table service has rewritten."""

    file_groups: int
    """The file groups that it has rewritten."""
    file_groups_left: int
    """Those that it has left as they were, because writes changed them meanwhile."""
    files_added: int
    files_removed: int
    bytes: int
    """The size of the files that were added."""


COMPACTION: Final = JobDeclaration(
    name=JobKind.COMPACTION, request=CompactionTask, result=RewriteResult, action=Action.COMPACTION
)
CLUSTERING: Final = JobDeclaration(
    name=JobKind.CLUSTERING, request=ClusteringTask, result=RewriteResult, action=Action.CLUSTERING
)
