"""A job's row as users see it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import ColumnElement, Connection, Label, literal_column, select

from app.access.errors import NotFound
from app.core.catalog.tables import datasets
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.tables import jobs
from app.core.jobs.values import Job, JobState
from app.kernel.format.identifiers import is_uuid

_NAME: Final = "dataset_name"


def with_dataset_name(dataset_id: ColumnElement[str]) -> Label[str]:
    """The name of the dataset with this id, also of one that was deleted, as the column of a job."""
    return select(datasets.c.name).where(datasets.c.id == dataset_id).scalar_subquery().label(_NAME)


STORED_COLUMNS: Final = (*(jobs.c[name] for name in Job.__struct_fields__ if name != _NAME), jobs.c.task)
# By its text: SQLAlchemy would add the table to the subquery in RETURNING of an INSERT.
JOB_COLUMNS: Final = (
    *STORED_COLUMNS,
    with_dataset_name(literal_column("jobs.dataset_id", jobs.c.dataset_id.type)),
)
CLAIM_COLUMNS: Final = (*JOB_COLUMNS, jobs.c.staged_rows)


def job_of(row: Any) -> Job:
    """The job in a row of JOB_COLUMNS."""
    return job_from(row._asdict())


def job_from(columns: Mapping[str, Any]) -> Job:
    """The job in the values of JOB_COLUMNS by name."""
    values = dict(columns)
    task = values.pop("task")
    values["request"] = values["request"] if task is None else task
    return Job(**{**values, "kind": JobKind(values["kind"]), "state": JobState(values["state"])})


def claimed_job(row: Any) -> Job:
    """The job in a row of CLAIM_COLUMNS."""
    values = row._asdict()
    content = values.pop(jobs.c.staged_rows.name)
    job = job_from(values)
    return job if content is None else replace(job, request=job.write.with_content(bytes(content)))


def get_job(connection: Connection, job_id: str) -> Job:
    """Raises NotFound."""
    row = None
    if is_uuid(job_id):
        row = connection.execute(select(*JOB_COLUMNS).where(jobs.c.id == job_id)).one_or_none()
    if row is None:
        raise NotFound(f"there is no job {job_id}")
    return job_of(row)
