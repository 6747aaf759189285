"""Jobs that ended long ago, with their idempotency keys, batches of streams and transactions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, delete, literal, select, tuple_

from app.core.jobs.tables import idempotency, jobs, transactions, writer_batches
from app.infra.db.any_of import any_of
from app.infra.db.columns import metadata
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago


class JobCursor(NamedTuple):
    """A place in the order in which jobs ended."""

    finished_at: datetime
    job_id: str


class ExpiredJobs(NamedTuple):
    """One batch. `job_count`: jobs that were deleted. `last`: the last job that was checked; None if there was none."""

    job_count: int
    last: JobCursor | None


def _references() -> list[ColumnElement[bool]]:
    """The conditions that a row of another table refers to a job.

    Instants are moved to the archive by cleans. Files of read jobs and of the quarantine, and runs of exports, expire
    with what they belong to. The latest batch of a stream stays, so that a repeated one is recognised.
    """
    conditions: list[ColumnElement[bool]] = []
    for table in metadata.sorted_tables:
        for constraint in table.foreign_key_constraints:
            if constraint.referred_table is jobs:
                [own] = [each.parent for each in constraint.elements if each.column is jobs.c.id]
                conditions.append(select(1).where(own == jobs.c.id).correlate(jobs).exists())
    return conditions


_LATER: Final = writer_batches.alias("later")
# Not the latest of its stream.
_FOLLOWED: Final = (
    select(1)
    .where(
        _LATER.c.dataset_id == writer_batches.c.dataset_id,
        _LATER.c.writer_id == writer_batches.c.writer_id,
        _LATER.c.batch_id > writer_batches.c.batch_id,
    )
    .exists()
)


class ExpiredJobStore:
    """Ended jobs in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def expire(
        self, tenant_id: str, after: JobCursor | None, *, keep_seconds: float, limit: int
    ) -> ExpiredJobs:
        """Checks the next `limit` jobs at most that ended more than `keep_seconds` ago; deletes the unreferenced ones.

        `after`: where the batch before ended; None: from the beginning. Each batch is one transaction.
        """
        place = tuple_(jobs.c.finished_at, jobs.c.id)
        query = (
            select(jobs.c.finished_at, jobs.c.id)
            .where(jobs.c.finished_at < seconds_ago(keep_seconds))
            .order_by(jobs.c.finished_at, jobs.c.id)
            .limit(limit)
        )
        if after is not None:
            query = query.where(place > tuple_(after.finished_at, literal(after.job_id, jobs.c.id.type)))
        with self._database.tenant(tenant_id) as connection:
            old = connection.execute(query).all()
            if not old:
                return ExpiredJobs(job_count=0, last=None)
            job_count = _delete(connection, [row.id for row in old])
        return ExpiredJobs(job_count=job_count, last=JobCursor(old[-1].finished_at, old[-1].id))


def _delete(connection: Connection, ids: Sequence[str]) -> int:
    connection.execute(delete(idempotency).where(any_of(idempotency.c.job_id, ids)))
    connection.execute(delete(writer_batches).where(any_of(writer_batches.c.job_id, ids), _FOLLOWED))
    no_reference = and_(*(~each for each in _references()))
    rows = connection.execute(
        delete(jobs).where(any_of(jobs.c.id, ids), no_reference).returning(jobs.c.transaction_id)
    ).all()
    transaction_ids = {row.transaction_id for row in rows} - {None}
    if transaction_ids:
        member = select(1).where(jobs.c.transaction_id == transactions.c.id).exists()
        connection.execute(delete(transactions).where(any_of(transactions.c.id, transaction_ids), ~member))
    return len(rows)
