"""Analyses: distinct values of columns."""

from __future__ import annotations

from typing import Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TableServiceRequest


class AnalysisTask(TableServiceRequest, frozen=True, kw_only=True, tag="analysis"):
    """Counts the distinct values of each column, at the latest version when it runs."""

    @property
    def exclusive(self) -> bool:
        """It only reads."""
        return False


class AnalysisResult(msgspec.Struct, frozen=True, kw_only=True):
    """What an analysis has read."""

    version: int
    """The version that was analyzed."""
    rows: int
    """The rows of the table at that version."""
    columns: int
    """The columns whose distinct values were counted."""


ANALYSIS: Final = JobDeclaration(
    name=JobKind.ANALYSIS, request=AnalysisTask, result=AnalysisResult, time_limited=True
)
