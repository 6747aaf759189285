"""Archived instants: the files that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import structs
from sqlalchemy import ColumnElement, Connection, delete, false, func, insert, select

from app.core.jobs.repository.job_locks import held_by, lock_jobs
from app.core.jobs.tables import instants
from app.core.jobs.values import Claim
from app.core.timeline.archives import TimelineArchive
from app.core.timeline.instants import InstantRecord
from app.core.timeline.repository.instant_rows import OPEN_INSTANT, oldest_instants
from app.core.timeline.tables import timeline_archives
from app.infra.db.any_of import any_of
from app.infra.db.session import Database

_COLUMNS: Final = tuple(timeline_archives.c[name] for name in TimelineArchive.__struct_fields__)


def count_archivable(connection: Connection, dataset_id: str, keep: int, limit: int) -> int:
    """The number of instants before the latest `keep` that can be archived, counted up to `limit`."""
    some = select(instants.c.id).where(*_archivable(connection, dataset_id, keep)).limit(limit).subquery()
    return connection.execute(select(func.count()).select_from(some)).scalar_one()


def _archivable(connection: Connection, dataset_id: str, keep: int) -> list[ColumnElement[bool]]:
    """The conditions of instants that can be archived."""
    in_dataset = instants.c.dataset_id == dataset_id
    last = connection.execute(
        select(instants.c.id).where(in_dataset).order_by(instants.c.id.desc()).offset(keep).limit(1)
    ).scalar_one_or_none()
    if last is None:
        return [false()]
    first_open = connection.execute(
        select(func.min(instants.c.id)).where(in_dataset, OPEN_INSTANT)
    ).scalar_one_or_none()
    before = [] if first_open is None else [instants.c.id < first_open]
    return [in_dataset, instants.c.id <= last, *before]


class TimelineArchiveStore:
    """The index of archive files in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def oldest(self, tenant_id: str, dataset_id: str, keep: int, limit: int) -> list[InstantRecord]:
        """Up to `limit` instants in the order of their ids that can be archived.

        They are final, as all before them are, and not among the latest `keep`.
        """
        with self._database.tenant(tenant_id) as connection:
            return oldest_instants(connection, *_archivable(connection, dataset_id, keep), limit=limit)

    def archive(
        self, tenant_id: str, dataset_id: str, claim: Claim, archive: TimelineArchive, ids: Sequence[str]
    ) -> bool:
        """Adds the archive to the catalogue and deletes its instants there, in one transaction.

        False, and nothing is changed, if the claim is void, or another archive has some of them.
        """
        with self._database.tenant(tenant_id) as connection:
            row_count = 0
            if lock_jobs(connection, held_by([claim])):
                row_count = connection.execute(
                    delete(instants).where(
                        instants.c.dataset_id == dataset_id, any_of(instants.c.id, ids), ~OPEN_INSTANT
                    )
                ).rowcount
            if row_count != len(ids):
                connection.rollback()
                return False
            connection.execute(
                insert(timeline_archives).values(dataset_id=dataset_id, **structs.asdict(archive))
            )
        return True

    def before(
        self, tenant_id: str, dataset_id: str, instant: str | None, limit: int
    ) -> list[TimelineArchive]:
        """Up to `limit` archives with instants before one (None: any), the one with the latest first."""
        conditions = [timeline_archives.c.dataset_id == dataset_id]
        if instant is not None:
            conditions.append(timeline_archives.c.first_instant < instant)
        query = (
            select(*_COLUMNS)
            .where(*conditions)
            .order_by(timeline_archives.c.last_instant.desc())
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return [TimelineArchive(**row._asdict()) for row in connection.execute(query)]
