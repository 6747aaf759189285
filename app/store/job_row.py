"""A job's row as users see it."""

from __future__ import annotations

from typing import Any, Final

from app.services.model import Job, JobKind, JobState
from app.store.models import jobs

JOB_COLUMNS: Final = tuple(jobs.c[name] for name in Job.__struct_fields__)


def job_of(row: Any) -> Job:
    """The job in a row of JOB_COLUMNS."""
    values = row._asdict()
    return Job(**{**values, "kind": JobKind(values["kind"]), "state": JobState(values["state"])})
