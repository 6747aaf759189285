"""Rows that expire: jobs that ended long ago, subjects of tokens that were not seen for long, and deleted datasets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import (
    ColumnClause,
    ColumnElement,
    Connection,
    Table,
    and_,
    column,
    delete,
    literal,
    select,
    tuple_,
)

from app.access.tenants.tables import api_keys, token_subjects, usage_days
from app.core.catalog.tables import datasets
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.tables import idempotency, instants, jobs, outbox, transactions, writer_batches
from app.infra.db.any_of import any_of
from app.infra.db.columns import metadata
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_ROW: Final[ColumnClause[str]] = column("ctid")
# What names a subject by its id. Entries of the audit have the name themselves.
_SUBJECT_REFERENCES: Final = (jobs.c.actor, instants.c.actor, api_keys.c.created_by)
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


class JobCursor(NamedTuple):
    """A place in the order in which jobs ended."""

    finished_at: datetime
    job_id: str


class ExpiredJobs(NamedTuple):
    """One batch. `job_count`: jobs that were deleted. `last`: the last job that was checked; None if there was none."""

    job_count: int
    last: JobCursor | None


def _job_references() -> list[ColumnElement[bool]]:
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
            job_count = _delete_jobs(connection, [row.id for row in old])
        return ExpiredJobs(job_count=job_count, last=JobCursor(old[-1].finished_at, old[-1].id))


def _delete_jobs(connection: Connection, ids: Sequence[str]) -> int:
    connection.execute(delete(idempotency).where(any_of(idempotency.c.job_id, ids)))
    connection.execute(delete(writer_batches).where(any_of(writer_batches.c.job_id, ids), _FOLLOWED))
    no_reference = and_(*(~each for each in _job_references()))
    rows = connection.execute(
        delete(jobs).where(any_of(jobs.c.id, ids), no_reference).returning(jobs.c.transaction_id)
    ).all()
    transaction_ids = {row.transaction_id for row in rows} - {None}
    if transaction_ids:
        member = select(1).where(jobs.c.transaction_id == transactions.c.id).exists()
        connection.execute(delete(transactions).where(any_of(transactions.c.id, transaction_ids), ~member))
    return len(rows)


class SubjectCursor(NamedTuple):
    """A place in the order in which subjects were last seen."""

    last_seen_at: datetime
    subject_id: str


class ExpiredSubjects(NamedTuple):
    """One batch. `subject_count`: those that were deleted. `last`: the last one that was checked; None at the end."""

    subject_count: int
    last: SubjectCursor | None


class ExpiredSubjectStore:
    """Subjects in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def expire(
        self, tenant_id: str, after: SubjectCursor | None, *, keep_seconds: float, limit: int
    ) -> ExpiredSubjects:
        """Checks the next `limit` subjects at most that were last seen more than `keep_seconds` ago.

        Deletes those to which no job, no entry of a timeline and no API key refers. `after`: where the batch before
        ended; None: from the beginning. Each batch is one transaction.
        """
        columns = token_subjects.c
        old = columns.last_seen_at < seconds_ago(keep_seconds)
        place = columns.last_seen_at, columns.id
        query = select(*place).where(old).order_by(*place).limit(limit)
        if after is not None:
            last_place = tuple_(
                *(literal(value, each.type) for value, each in zip(after, place, strict=True))
            )
            query = query.where(tuple_(*place) > last_place)
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
            unused_ids = {row.id for row in rows}
            for reference in _SUBJECT_REFERENCES:
                if unused_ids:
                    references = select(reference).where(any_of(reference, sorted(unused_ids))).distinct()
                    unused_ids.difference_update(connection.execute(references).scalars())
            if unused_ids:
                # One that was seen meanwhile stays.
                connection.execute(delete(token_subjects).where(any_of(columns.id, sorted(unused_ids)), old))
        last = SubjectCursor(*rows[-1]) if len(rows) == limit else None
        return ExpiredSubjects(subject_count=len(unused_ids), last=last)


def _dependants() -> list[Table]:
    """The tables with rows of a dataset, in an order in which they can be deleted.

    Jobs and the usage of days expire by themselves. Messages of the outbox are deleted when they are sent.
    """
    other_tables = (datasets, jobs, outbox, usage_days)
    return [
        table
        for table in reversed(metadata.sorted_tables)
        if "dataset_id" in table.c and all(table is not each for each in other_tables)
    ]


_ENDED: Final = select(datasets.c.id).where(
    datasets.c.deleted_at.is_not(None),
    ~select(1).where(jobs.c.dataset_id == datasets.c.id, UNFINISHED).exists(),
)


def _purge_dependants(connection: Connection, dataset_id: str, limit: int) -> int:
    rows = 0
    for table in _dependants():
        some = select(_ROW).select_from(table).where(table.c.dataset_id == dataset_id).limit(limit - rows)
        rows += connection.execute(delete(table).where(_ROW.in_(some))).rowcount
        if rows == limit:
            break
    return rows


class DeletedDatasetStore:
    """Deleted datasets in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ended(self, tenant_id: str, *, grace_seconds: float) -> Sequence[str]:
        """Ids of the datasets that were deleted more than `grace_seconds` ago and have no unfinished job."""
        query = _ENDED.where(datasets.c.deleted_at < seconds_ago(grace_seconds))
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalars().all()

    def purge_dependants(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        """As `purge`, for a dataset without an unfinished job; the row of the dataset itself stays."""
        with self._database.tenant(tenant_id) as connection:
            query = _ENDED.where(datasets.c.id == dataset_id)
            if connection.execute(query).first() is None:
                return 0
            return _purge_dependants(connection, dataset_id, limit)

    def purge(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        """Deletes up to `limit` rows of a deleted dataset in one transaction; returns their number.

        After all other rows, that of the dataset itself, if it has no job any more. A live dataset is not touched.
        """
        with self._database.tenant(tenant_id) as connection:
            query = select(1).where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_not(None))
            if connection.execute(query).first() is None:
                return 0
            rows = _purge_dependants(connection, dataset_id, limit)
            if rows == limit:
                return rows
            member = select(1).where(jobs.c.dataset_id == datasets.c.id).exists()
            return (
                rows
                + connection.execute(
                    delete(datasets).where(
                        datasets.c.id == dataset_id, datasets.c.deleted_at.is_not(None), ~member
                    )
                ).rowcount
            )
