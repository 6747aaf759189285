"""Comparisons of two versions."""

from __future__ import annotations

from typing import Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TaskRequest
from app.kernel.commit.comparison import FieldDifference, FilesCompared


class ComparisonTask(TaskRequest, frozen=True, kw_only=True, tag="comparison"):
    """Counts the rows that differ between two versions, and reports how files and schema differ."""

    from_version: int
    to_version: int


class RowsCompared(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of rows that differ, and of those that do not."""

    added: int
    removed: int
    changed: int
    unchanged: int


class ComparisonResult(msgspec.Struct, frozen=True, kw_only=True):
    """How two versions differ."""

    from_version: int
    to_version: int
    rows: RowsCompared
    columns: dict[str, int]
    """By the name of a column: the changed rows in which it differs."""
    files: FilesCompared
    schema: list[FieldDifference]


COMPARISON: Final = JobDeclaration(
    name=JobKind.COMPARISON, request=ComparisonTask, result=ComparisonResult, time_limited=True
)
