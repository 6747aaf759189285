"""The datasets of all tenants that store most, and what all store."""

from __future__ import annotations

from typing import Final

from sqlalchemy import text

from app.features.monitoring.values import StoredDataset, StoredSums
from app.infra.db.session import Database

_TENANTS_READ: Final = 1_000
# The samples of a day begin with the first of its minutes, so yesterday's count until then. A deleted dataset without
# files has no head: its rows are deleted with its files.
_LARGEST: Final = text(
    """
    WITH tenants_by_size AS (
        SELECT s.tenant_id, t.name FROM storage_samples s JOIN tenants t ON t.tenant_id = s.tenant_id
        ORDER BY s.stored_bytes DESC, s.tenant_id LIMIT :tenants
    ), latest AS (
        SELECT DISTINCT ON (u.tenant_id, u.dataset_id) u.tenant_id, b.name AS tenant, u.dataset_id, u.stored_bytes
        FROM tenants_by_size b
        JOIN usage_days u ON u.tenant_id = b.tenant_id AND u.day >= current_date - 1
        ORDER BY u.tenant_id, u.dataset_id, u.day DESC
    )
    SELECT l.tenant, d.name AS dataset, l.dataset_id::text AS dataset_id, l.stored_bytes,
           s.size_bytes, d.deleted_at
    FROM latest l
    JOIN datasets d ON d.tenant_id = l.tenant_id AND d.id = l.dataset_id
    JOIN heads h ON h.tenant_id = l.tenant_id AND h.dataset_id = l.dataset_id
    LEFT JOIN dataset_samples s ON s.tenant_id = l.tenant_id AND s.dataset_id = l.dataset_id
    WHERE l.stored_bytes > 0
    ORDER BY l.stored_bytes DESC, l.tenant_id, l.dataset_id LIMIT :limit
    """
).bindparams(tenants=_TENANTS_READ)


_SUMS: Final = text(
    """
    SELECT (SELECT coalesce(sum(stored_bytes), 0) FROM storage_samples)::bigint AS dataset_bytes,
           (SELECT coalesce(sum(size_bytes), 0) FROM quarantine_files)::bigint AS quarantine_bytes,
           (SELECT coalesce(sum(size_bytes), 0) FROM rendered_files WHERE path IS NOT NULL)::bigint AS rendered_bytes,
           CASE WHEN has_database_privilege(current_database(), 'CONNECT')
                THEN pg_database_size(current_database()) END AS database_bytes
    """
)


class StoredDatasetStore:
    """Sizes of datasets of all tenants in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def sums(self, *, files_on_disk: bool, database_on_host: bool) -> StoredSums:
        """What all tenants store. Raises TooSlow after five seconds, Unavailable."""
        with self._database.monitor() as connection:
            row = connection.execute(_SUMS).one()
        return StoredSums(**row._asdict(), files_on_disk=files_on_disk, database_on_host=database_on_host)

    def largest(self, limit: int) -> list[StoredDataset]:
        """The datasets that store most, the largest first. Raises TooSlow after five seconds, Unavailable."""
        with self._database.monitor() as connection:
            rows = connection.execute(_LARGEST, {"limit": limit}).all()
        return [
            StoredDataset(
                tenant=row.tenant,
                dataset=row.dataset,
                dataset_id=row.dataset_id,
                stored_bytes=row.stored_bytes,
                size_bytes=row.size_bytes,
                deleted_at=row.deleted_at,
            )
            for row in rows
        ]
