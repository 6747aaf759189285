"""The data of tenants that are being deleted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnClause, Connection, Table, and_, column, delete, func, or_, select, update

from app.access.audit.tables import audit
from app.access.tenants.tables import api_keys, tenant_deletions, tenants
from app.core.catalog.tables import datasets
from app.core.consumers.tables import consumers
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.tables import jobs, outbox
from app.infra.db.columns import metadata
from app.infra.db.deletion_hold import deletions_held
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_ROW: Final[ColumnClause[str]] = column("ctid")
_NOW: Final = func.clock_timestamp()
# What is left of a tenant, what the administration deletes, and messages, which a relay deletes when it has sent them.
_KEPT: Final = (tenants, tenant_deletions, audit, api_keys, outbox)


def _emptied() -> list[Table]:
    """The tables that the data of a tenant are in, in an order in which rows can be deleted."""
    return [
        table
        for table in reversed(metadata.sorted_tables)
        if "tenant_id" in table.c and all(table is not each for each in _KEPT)
    ]


class EndingTenantStore:
    """Tenants in Postgres that are being deleted."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def ending(self, *, after_seconds: float) -> Sequence[str]:
        """Ids of tenants that are being deleted, or of which nothing was left less than this time ago."""
        recent = seconds_ago(after_seconds)
        query = select(tenant_deletions.c.tenant_id).where(
            or_(tenant_deletions.c.cleared_at.is_(None), tenant_deletions.c.cleared_at > recent)
        )
        with self._database.relay() as connection:
            return connection.execute(query).scalars().all()

    def deletions_held(self) -> bool:
        """Whether a backup runs, so that no file may be deleted."""
        return deletions_held(self._database)

    def live_datasets(self, tenant_id: str) -> Sequence[str]:
        """Ids of the datasets and views that are not deleted."""
        query = select(datasets.c.id).where(datasets.c.deleted_at.is_(None)).order_by(datasets.c.id.desc())
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalars().all()

    def is_busy(self, tenant_id: str, *, lease_seconds: float) -> bool:
        """Whether a job is unfinished, or a worker may still be at one that was ended, or at a follower."""
        recent = seconds_ago(lease_seconds)
        working = select(1).where(or_(UNFINISHED, and_(jobs.c.attempts > 0, jobs.c.finished_at > recent)))
        following = select(1).where(consumers.c.lease_until > _NOW)
        with self._database.tenant(tenant_id) as connection:
            return any(connection.execute(each.limit(1)).first() is not None for each in (working, following))

    def delete_rows(self, tenant_id: str, limit: int) -> int:
        """Deletes up to `limit` rows of the tenant in one transaction, which also counts them; returns their number."""
        with self._database.tenant(tenant_id) as connection:
            deletion = _lock(connection)
            counts: dict[str, int] = dict(deletion.rows_deleted)
            rows = 0
            for table in _emptied():
                some = select(_ROW).select_from(table).limit(limit - rows)
                row_count = connection.execute(delete(table).where(_ROW.in_(some))).rowcount
                if row_count:
                    counts[table.name] = counts.get(table.name, 0) + row_count
                    rows += row_count
                if rows == limit:
                    break
            if rows:
                connection.execute(update(tenant_deletions).values(rows_deleted=counts))
        return rows

    def count_files(self, tenant_id: str, files: int, size_bytes: int) -> None:
        """Records that files were deleted."""
        deletion = tenant_deletions.c
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                update(tenant_deletions).values(
                    files_deleted=deletion.files_deleted + files,
                    bytes_deleted=deletion.bytes_deleted + size_bytes,
                )
            )

    def rows_left(self, tenant_id: str) -> dict[str, int]:
        """Counts the rows of the tenant, by table."""
        with self._database.tenant(tenant_id) as connection:
            counts = {
                table.name: int(connection.execute(select(func.count()).select_from(table)).scalar_one())
                for table in _emptied()
            }
        waiting = select(func.count()).select_from(outbox).where(outbox.c.tenant_id == tenant_id)
        with self._database.relay() as connection:
            counts[outbox.name] = int(connection.execute(waiting).scalar_one())
        return counts

    def cleared(self, tenant_id: str, remaining_rows: dict[str, int], remaining_files: int) -> None:
        """Records that nothing of the tenant was found any more."""
        values = {"rows_left": remaining_rows, "files_left": remaining_files, "cleared_at": _NOW}
        with self._database.tenant(tenant_id) as connection:
            first = tenant_deletions.c.cleared_at.is_(None)
            connection.execute(update(tenant_deletions).where(first).values(values))


def _lock(connection: Connection) -> Any:
    return connection.execute(select(tenant_deletions).with_for_update()).one()
