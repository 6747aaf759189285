"""Rows of deleted datasets. The dataset's own row is deleted last, once its jobs have expired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnClause, Table, column, delete, select

from app.core.catalog.tables import datasets
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.tables import jobs, outbox
from app.infra.db.columns import metadata
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago


def _dependants() -> list[Table]:
    """The tables with rows of a dataset, in an order in which they can be deleted.

    Jobs expire by themselves. Messages of the outbox are deleted when they are sent.
    """
    other_tables = (datasets, jobs, outbox)
    return [
        table
        for table in reversed(metadata.sorted_tables)
        if "dataset_id" in table.c and all(table is not each for each in other_tables)
    ]


_ROW: Final[ColumnClause[str]] = column("ctid")


class DeletedDatasetStore:
    """Deleted datasets in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ended(self, tenant_id: str, *, grace_seconds: float) -> Sequence[str]:
        """Ids of the datasets that were deleted more than `grace_seconds` ago and have no unfinished job."""
        unfinished_job = select(1).where(jobs.c.dataset_id == datasets.c.id, UNFINISHED).exists()
        query = select(datasets.c.id).where(
            datasets.c.deleted_at < seconds_ago(grace_seconds),
            ~unfinished_job,
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalars().all()

    def purge(self, tenant_id: str, dataset_id: str, limit: int) -> int:
        """Deletes up to `limit` rows of a deleted dataset in one transaction; returns their number.

        After all other rows, that of the dataset itself, if it has no job any more. A live dataset is not touched.
        """
        with self._database.tenant(tenant_id) as connection:
            query = select(1).where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_not(None))
            if connection.execute(query).first() is None:
                return 0
            rows = 0
            for table in _dependants():
                some = (
                    select(_ROW)
                    .select_from(table)
                    .where(table.c.dataset_id == dataset_id)
                    .limit(limit - rows)
                )
                rows += connection.execute(delete(table).where(_ROW.in_(some))).rowcount
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
