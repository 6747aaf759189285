"""Partitions whose files changed."""

from __future__ import annotations

from sqlalchemy import select, union

from app.core.catalog.tables import heads
from app.core.timeline.tables import files
from app.infra.db.session import Database
from app.kernel.format.file_group import FileKind


class TouchedPartitionStore:
    """Partitions whose files changed, from the rows of files in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def touched(self, tenant_id: str, dataset_id: str, since: int, until: int) -> set[str] | None:
        """The paths of partitions with rows that versions (since, until] changed; None if these are not kept."""
        paths = union(
            *(
                select(files.c.partition_path).where(
                    files.c.dataset_id == dataset_id,
                    files.c.kind != FileKind.TOMBSTONE.value,
                    version > since,
                    version <= until,
                )
                for version in (files.c.added_version, files.c.removed_version)
            )
        )
        earliest_version = select(heads.c.earliest_version).where(heads.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            touched_paths = set(connection.execute(paths).scalars())
            # Read last, so that files that were removed meanwhile are noticed.
            return touched_paths if connection.execute(earliest_version).scalar_one() <= since else None
