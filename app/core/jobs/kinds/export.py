"""Runs of exports."""

from __future__ import annotations

from types import NoneType
from typing import Final

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TaskRequest
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess


class ExportTask(TaskRequest, frozen=True, kw_only=True, tag="export"):
    """Run `number` (from 1) of an export: its range is in the run's own row. `access`: that of the export."""

    export_id: str
    number: int
    access: RowAccess = EVERYTHING


EXPORT: Final = JobDeclaration(name=JobKind.EXPORT, request=ExportTask, result=NoneType, time_limited=True)
