"""The files that the rows of a dataset refer to, with their recorded sizes and checksums."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Select, select

from app.access.tenants.tables import tenant_deletions, tenants
from app.core.catalog.tables import datasets, uploads
from app.core.jobs.tables import UNFINISHED, jobs
from app.core.timeline.tables import changelog_files, files, quarantine_files, timeline_archives
from app.features.exports.tables import export_files
from app.features.reads.tables import read_files
from app.features.retention.values import ReferencedFile
from app.infra.db.session import Database

_WITH_CHECKSUMS: Final = (
    files,
    changelog_files,
    quarantine_files,
    uploads,
    export_files,
    read_files,
    timeline_archives,
)


class ReferencedFileStore:
    """Files that must exist. Those that are only kept for readers which had begun before are not among them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> list[str]:
        """Ids of all tenants that are not being deleted."""
        ending = select(tenant_deletions.c.tenant_id)
        with self._database.relay() as connection:
            ids = connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id.not_in(ending)))
            return list(ids.scalars())

    def datasets(self, tenant_id: str) -> list[str]:
        """Ids of all datasets and views that are not deleted."""
        with self._database.tenant(tenant_id) as connection:
            return list(
                connection.execute(select(datasets.c.id).where(datasets.c.deleted_at.is_(None))).scalars()
            )

    def files(self, tenant_id: str, dataset_id: str) -> dict[str, ReferencedFile | None]:
        """The files of a dataset by path: those of all versions, of its feed, and the input of unfinished writes.

        None for a file of deletion vectors: each vector in it has a checksum of its own.
        """
        files_by_path: dict[str, ReferencedFile | None] = {}

        def add(path: str, size_bytes: int, checksum: str) -> None:
            files_by_path[path] = ReferencedFile(path=path, size_bytes=size_bytes, checksum=checksum)

        with self._database.tenant(tenant_id) as connection:
            files_by_path.update(dict.fromkeys(connection.execute(_vectors(dataset_id)).scalars()))
            for index in connection.execute(_indexes(dataset_id)).scalars():
                add(index.path, index.size_bytes, index.checksum)
            for request, has_rows in connection.execute(_waiting(dataset_id)):
                # The rows of small writes are in their jobs.
                staged_files = () if has_rows else request.staged
                raw = () if request.raw is None else (request.raw,)
                for file in (*staged_files, *raw, *request.quarantined):
                    add(file.path, file.size_bytes, file.checksum)
            for table in _WITH_CHECKSUMS:
                query = select(table.c.path, table.c.size_bytes, table.c.checksum)
                for row in connection.execute(query.where(table.c.dataset_id == dataset_id)):
                    add(row.path, row.size_bytes, row.checksum)
        return files_by_path


def _vectors(dataset_id: str) -> Select[Any]:
    column = files.c.vector_path
    return select(column).where(files.c.dataset_id == dataset_id, column.is_not(None)).distinct()


def _indexes(dataset_id: str) -> Select[Any]:
    return select(files.c.index_file).where(files.c.dataset_id == dataset_id, files.c.index_file.is_not(None))


def _waiting(dataset_id: str) -> Select[Any]:
    return select(jobs.c.request, jobs.c.staged_rows.is_not(None)).where(
        jobs.c.dataset_id == dataset_id, UNFINISHED, jobs.c.request.is_not(None)
    )
