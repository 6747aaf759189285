"""Cleans: versions that expire, instants that are archived, files that are deleted."""

from __future__ import annotations

from typing import Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TableServiceRequest
from app.kernel.format.instant import Action
from app.kernel.format.policies import HistoryPolicy


class CleanTask(TableServiceRequest, frozen=True, kw_only=True, tag="clean"):
    """Removes versions that the history no longer keeps, archives old instants, and deletes files without references.

    `history`: replaces the history of the dataset for this task.
    """

    history: HistoryPolicy | None = None


class CleanResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a clean has removed."""

    earliest_version: int
    """The earliest version that is kept."""
    versions_expired: int
    files_expired: int
    bytes_expired: int
    instants_archived: int
    files_deleted: int
    """Files without references that were deleted."""


CLEAN: Final = JobDeclaration(name=JobKind.CLEAN, request=CleanTask, result=CleanResult, action=Action.CLEAN)
