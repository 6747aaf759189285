"""Which partitions had files come or go."""

from __future__ import annotations

from sqlalchemy import select, union

from app.catalog.tables import heads
from app.db.session import Database
from app.timeline.tables import files


class TouchedPartitionStore:
    """Changes of partitions, as the files in Postgres tell them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def touched(self, tenant_id: str, dataset_id: str, since: int, until: int) -> set[str] | None:
        """Those of versions (since, until] by path; None if versions from there on are not kept, so nobody knows."""
        paths = union(
            *(
                select(files.c.partition_path).where(
                    files.c.dataset_id == dataset_id, version > since, version <= until
                )
                for version in (files.c.added_version, files.c.removed_version)
            )
        )
        kept = select(heads.c.earliest_version).where(heads.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            found = set(connection.execute(paths).scalars())
            # Asked last: what was forgotten meanwhile is seen.
            return found if connection.execute(kept).scalar_one() <= since else None
