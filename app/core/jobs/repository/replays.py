"""Requests that came before: which job an idempotency key belongs to, and whether it may be made again."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.core.idempotency.errors import IdempotencyMismatch
from app.core.jobs.repository.job_row import get_job
from app.core.jobs.tables import idempotency
from app.core.jobs.values import Job, NewJob, failed_by_service


def key_row(dataset_id: str, key: str) -> Any:
    """The query for an idempotency key."""
    return select(idempotency.c.job_id, idempotency.c.request_hash).where(
        idempotency.c.dataset_id == dataset_id, idempotency.c.key == key
    )


def replayed_job(connection: Connection, dataset_id: str, key: str, request_hash: str) -> Job | None:
    """The job that the key stands for; None if a new one may have it. Raises IdempotencyMismatch."""
    row = connection.execute(key_row(dataset_id, key)).one_or_none()
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise IdempotencyMismatch(job_id=row.job_id)
    job = get_job(connection, row.job_id)
    return None if failed_by_service(job.state, job.error) else job


def keep_key(connection: Connection, new: NewJob, job_id: str) -> None:
    """From now on the idempotency key of a request, if it has one, stands for a job that exists already."""
    if new.idempotency_key is not None:
        connection.execute(
            insert_unless(idempotency)
            .values(
                dataset_id=new.dataset_id,
                key=new.idempotency_key,
                request_hash=new.request_hash,
                job_id=job_id,
            )
            .on_conflict_do_nothing()
        )
