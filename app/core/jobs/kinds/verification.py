"""Verifications: feed and table compared."""

from __future__ import annotations

from typing import Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TaskRequest
from app.kernel.changelog.verification import Difference


class VerifyTask(TaskRequest, frozen=True, kw_only=True, tag="verify"):
    """Folds the feed up to a version (None: the head when it runs) and compares it with the table."""

    version: int | None = None


class VerifyResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification has found."""

    version: int
    """The version that was verified."""
    from_version: int
    """The version that the changes were applied to; 0 for an empty table."""
    equal: bool
    """Whether there is no difference."""
    rows: int
    """The rows of the table."""
    changes: int
    """The changes that were applied."""
    first_offset: int
    """The offset of the first of them."""
    next_offset: int
    """The offset after the last of them."""
    differences: int
    """The number of differences."""
    first_difference: Difference | None
    """The first difference."""


VERIFICATION: Final = JobDeclaration(
    name=JobKind.VERIFICATION, request=VerifyTask, result=VerifyResult, time_limited=True
)
