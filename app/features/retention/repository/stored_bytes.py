"""Samples of the bytes that the files of tenants have."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Subquery, Table, func, select, text, union_all
from sqlalchemy.dialects.postgresql import insert

from app.access.tenants.tables import storage_samples, usage_days
from app.core.catalog.tables import uploads
from app.core.timeline.tables import (
    SEGMENT_BYTES,
    changelog_files,
    files,
    quarantine_files,
    replaced_changelog_files,
    timeline_archives,
)
from app.features.exports.tables import export_files
from app.features.reads.tables import read_files
from app.features.retention.repository.tenant_ids import lasting_tenants
from app.infra.db.columns import CURRENT_TENANT
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

# Of several workers one samples, and the others do not wait for it.
_TRY_LOCK: Final = text(
    f"SELECT pg_try_advisory_xact_lock(hashtextextended('samples ' || {CURRENT_TENANT}, 0))"
)
_NOW: Final = func.clock_timestamp()
_ONE_ROW_EACH: Final = (
    quarantine_files,
    timeline_archives,
    uploads,
    export_files,
    read_files,
)


class StoredBytesStore:
    """Sums of the files that rows of the catalogue name, by tenant and dataset."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> list[str]:
        """Ids of all tenants that are not being deleted."""
        return lasting_tenants(self._database)

    def sample(self, tenant_id: str, *, older_than_seconds: float) -> bool:
        """Stores a sample, unless the last one is younger: then false. Also keeps the largest of the day."""
        with self._database.tenant(tenant_id) as connection:
            if not connection.execute(_TRY_LOCK).scalar_one():
                return False
            claim = insert(storage_samples).values(sampled_at=_NOW)
            statement = claim.on_conflict_do_update(
                index_elements=["tenant_id"],
                set_={"sampled_at": _NOW},
                where=storage_samples.c.sampled_at <= seconds_ago(older_than_seconds),
            )
            if connection.execute(statement.returning(storage_samples.c.tenant_id)).one_or_none() is None:
                return False
            sums = _sums()
            rows = connection.execute(select(sums.c.dataset_id, sums.c.size_bytes)).all()
            connection.execute(
                storage_samples.update().values(stored_bytes=sum(round(row.size_bytes) for row in rows))
            )
            day_rows: list[dict[str, Any]] = [
                {
                    "day": func.current_date(),
                    "dataset_id": row.dataset_id,
                    "stored_bytes": round(row.size_bytes),
                }
                for row in sorted(rows, key=lambda row: str(row.dataset_id))
            ]
            for start in range(0, len(day_rows), _ROWS_MAX):
                new = insert(usage_days).values(day_rows[start : start + _ROWS_MAX])
                largest = func.greatest(usage_days.c.stored_bytes, new.excluded.stored_bytes)
                connection.execute(
                    new.on_conflict_do_update(
                        index_elements=["tenant_id", "day", "dataset_id"], set_={"stored_bytes": largest}
                    )
                )
        return True


_ROWS_MAX: Final = 1_000


def _sums() -> Subquery:
    # A file that is listed again has several rows with one path, and a merged changelog file one for each segment. A
    # data file may be a changelog file, too.
    listings = union_all(
        _by_path(files, func.max(files.c.size_bytes)),
        _by_path(changelog_files, func.sum(SEGMENT_BYTES)),
        _by_path(replaced_changelog_files, func.max(replaced_changelog_files.c.size_bytes)),
    ).subquery()
    path_sizes = select(listings.c.dataset_id, func.max(listings.c.size_bytes).label("size_bytes")).group_by(
        listings.c.dataset_id, listings.c.path
    )
    each = (select(table.c.dataset_id, table.c.size_bytes) for table in _ONE_ROW_EACH)
    all_files = union_all(path_sizes, *each).subquery()
    return (
        select(all_files.c.dataset_id, func.sum(all_files.c.size_bytes).label("size_bytes"))
        .group_by(all_files.c.dataset_id)
        .subquery()
    )


def _by_path(table: Table, size_bytes: ColumnElement[Any]) -> Select[Any]:
    """The files of a table with several rows for some of them."""
    columns = (table.c.dataset_id, table.c.path)
    return select(*columns, size_bytes.label("size_bytes")).group_by(*columns)
