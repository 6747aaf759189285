"""Lists of jobs, the newest first."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, ScalarSelect, TextClause, select

from app.core.catalog.tables import datasets
from app.core.jobs.repository.job_row import STORED_COLUMNS, job_from, with_dataset_name
from app.core.jobs.tables import UNFINISHED, jobs
from app.core.jobs.values import JobFilter, JobState
from app.infra.db.any_of import matches_any
from app.kernel.paging import Page, PageTokens, unknown_token

SCANNED_MAX: Final = 10_000
"""The most jobs that a page scans. A page that finds too few of them ends there, with a token for the rest."""


def list_jobs(
    connection: Connection,
    tenant_id: str,
    job_filter: JobFilter,
    *,
    page_size: int,
    page_token: str | None,
    scanned_max: int = SCANNED_MAX,
) -> Page:
    """Raises InvalidRequest for a token that is not valid."""
    tokens = job_tokens(tenant_id, job_filter)
    conditions: list[ColumnElement[bool] | TextClause] = []
    if job_filter.dataset_id is not None:
        conditions.append(jobs.c.dataset_id == job_filter.dataset_id)
    if job_filter.unfinished:
        # Of these there are few, and they have an index of their own.
        conditions.append(UNFINISHED)
    if page_token is not None:
        conditions.append(jobs.c.seq < _sequence_number(connection, tokens.id(page_token)))
    newest = select(*STORED_COLUMNS, jobs.c.seq).where(*conditions).order_by(jobs.c.seq.desc())
    scan = newest.limit(scanned_max).subquery()
    query = (
        select(scan, with_dataset_name(scan.c.dataset_id)).order_by(scan.c.seq.desc()).limit(page_size + 1)
    )
    if job_filter.kinds is not None:
        query = query.where(scan.c.kind.in_([kind.value for kind in job_filter.kinds]))
    if job_filter.states is not None:
        query = query.where(scan.c.state.in_([state.value for state in job_filter.states]))
    if job_filter.unresolved:
        query = query.where(scan.c.state == JobState.FAILED.value, _success_after(scan.c).is_(None))
    if job_filter.datasets is not None:
        granted_ids = select(datasets.c.id).where(matches_any(datasets.c.name, job_filter.datasets))
        query = query.where(scan.c.dataset_id.in_(granted_ids))
    rows = connection.execute(query).all()
    page = tokens.page(rows, page_size, lambda row: row.id, _job)
    if page.next_token is not None or job_filter.takes_all:
        return page
    last = connection.execute(
        select(jobs.c.id).where(*conditions).order_by(jobs.c.seq.desc()).offset(scanned_max - 1).limit(1)
    ).scalar_one_or_none()
    return Page(items=page.items, next_token=None if last is None else tokens.encode(last))


def _success_after(job: Any) -> ScalarSelect[Any]:
    """The first job of the same dataset and kind that was accepted after the failed one and has succeeded.

    It is looked up in the order of an index, which ends at the first one. A join would read all jobs.
    """
    later = jobs.alias("later")
    return (
        select(later.c.seq)
        .where(
            later.c.dataset_id == job.dataset_id,
            later.c.seq > job.seq,
            later.c.kind == job.kind,
            later.c.state == JobState.SUCCEEDED.value,
        )
        .order_by(later.c.seq)
        .limit(1)
        .scalar_subquery()
    )


def job_tokens(tenant_id: str, job_filter: JobFilter) -> PageTokens:
    """The tokens of a list of jobs."""
    return PageTokens("jobs", tenant_id, job_filter)


def _sequence_number(connection: Connection, job_id: str) -> int:
    """Where the job of a token stands. The token has its id: the number counts the jobs of all tenants."""
    number = connection.execute(select(jobs.c.seq).where(jobs.c.id == job_id)).scalar_one_or_none()
    if number is None:
        raise unknown_token()
    return number


def _job(row: Any) -> Any:
    columns = row._asdict()
    del columns["seq"]
    return job_from(columns)
