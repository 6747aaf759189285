"""The files that rows refer to: for the reaper by path, for a comparison with the storage with sizes and checksums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Select, String, delete, func, select
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.sql.expression import cast

from app.core.catalog.tables import datasets, uploads
from app.core.jobs.repository.job_locks import UNFINISHED
from app.core.jobs.tables import instants, jobs
from app.core.timeline.repository.instant_rows import OPEN_INSTANT
from app.core.timeline.tables import (
    changelog_files,
    files,
    quarantine_files,
    replaced_changelog_files,
    timeline_archives,
)
from app.features.exports.tables import export_files
from app.features.maintenance.tables import table_maintenance
from app.features.reads.tables import read_files
from app.features.rendered_files.tables import rendered_files
from app.features.retention.repository.tenant_ids import all_tenants, lasting_tenants
from app.features.retention.values import ReferencedFile
from app.infra.db.any_of import any_of
from app.infra.db.deletion_hold import deletions_held
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

# JSON, not JSONB, which rejects texts with a NUL.
_RAW = cast(jobs.c.request, JSON)["raw"]
_RAW_PATHS = (_RAW["path"].astext, func.json_array_elements(_RAW["others"]).op("->>")("path"))
_REFERENCES = (
    files.c.path,
    files.c.vector_path,
    files.c.index_path,
    changelog_files.c.path,
    replaced_changelog_files.c.path,
    quarantine_files.c.path,
    uploads.c.path,
    export_files.c.path,
    read_files.c.path,
    timeline_archives.c.path,
    rendered_files.c.path,
)
_WITH_CHECKSUMS: Final = (
    files,
    changelog_files,
    quarantine_files,
    uploads,
    export_files,
    read_files,
    timeline_archives,
)


class ReferenceStore:
    """References to files, of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> list[str]:
        """Ids of all tenants."""
        return all_tenants(self._database)

    def datasets(self, tenant_id: str) -> list[tuple[str, bool]]:
        """Ids of all datasets, those that were deleted last first; true for a deleted one."""
        query = select(datasets.c.id, datasets.c.deleted_at.is_not(None))
        query = query.order_by(datasets.c.deleted_at.desc().nulls_last(), datasets.c.id)
        with self._database.tenant(tenant_id) as connection:
            return [(row[0], row[1]) for row in connection.execute(query)]

    def expire_uploads(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        """Removes uploads made longer ago. `referenced` still finds the file of one that an unfinished job reads."""
        before = seconds_ago(older_than_seconds)
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                delete(uploads).where(uploads.c.dataset_id == dataset_id, uploads.c.created_at < before)
            )

    def expire_results(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        """Removes the files of read jobs that ended longer ago."""
        before = seconds_ago(older_than_seconds)
        old_jobs = select(1).where(jobs.c.id == read_files.c.job_id, jobs.c.finished_at < before)
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                delete(read_files).where(read_files.c.dataset_id == dataset_id, old_jobs.exists())
            )

    def expire_replaced(self, tenant_id: str, dataset_id: str, *, older_than_seconds: float) -> None:
        """Removes changelog files that were replaced longer ago, and that no job of the tenant may still read.

        A job reads the files that were listed after its attempt began; views read those of other datasets.
        """
        replaced_at = replaced_changelog_files.c.replaced_at
        # A replacement is visible a moment after its time.
        until = replaced_at + func.make_interval(0, 0, 0, 0, 0, 0, max(older_than_seconds, 0.0))
        reading = select(1).where(UNFINISHED, jobs.c.claimed_at <= until)
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                delete(replaced_changelog_files).where(
                    replaced_changelog_files.c.dataset_id == dataset_id,
                    replaced_at < seconds_ago(older_than_seconds),
                    ~reading.exists(),
                )
            )

    def unfinished(self, tenant_id: str, dataset_id: str) -> tuple[set[str], set[str], int | None]:
        """Ids of the instants, and of the jobs, that may still publish or read files.

        The third value is the claim of maintenance that may still list merged changelog files; None without one.
        """
        open_instants = select(instants.c.id).where(instants.c.dataset_id == dataset_id, OPEN_INSTANT)
        open_jobs = select(jobs.c.id).where(jobs.c.dataset_id == dataset_id, UNFINISHED)
        # A claim whose lease has ended may still list files, until it is settled or another one is made.
        open_claim = select(table_maintenance.c.epoch).where(
            table_maintenance.c.dataset_id == dataset_id, table_maintenance.c.lease_until.is_not(None)
        )
        with self._database.tenant(tenant_id) as connection:
            return (
                set(connection.execute(open_instants).scalars()),
                {str(job_id) for job_id in connection.execute(open_jobs).scalars()},
                connection.execute(open_claim).scalar_one_or_none(),
            )

    def deletions_held(self) -> bool:
        """Whether a backup runs, so that no file may be deleted."""
        return deletions_held(self._database)

    def referenced(self, tenant_id: str, dataset_id: str, paths: Sequence[str]) -> set[str]:
        """Those of the paths that a commit, an unfinished job, an upload or a run of an export refers to."""
        referenced_paths: set[str] = set()
        with self._database.tenant(tenant_id) as connection:
            for path in _RAW_PATHS:
                reading = select(cast(path, String)).where(jobs.c.dataset_id == dataset_id, UNFINISHED)
                referenced_paths.update(connection.execute(reading).scalars())
            for column in _REFERENCES:
                query = select(column).where(column.table.c.dataset_id == dataset_id, any_of(column, paths))
                referenced_paths |= set(connection.execute(query).scalars())
        return referenced_paths & set(paths)


class ReferencedFileStore:
    """Files that must exist. Those that are only kept for readers which had begun before are not among them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> list[str]:
        """Ids of all tenants that are not being deleted."""
        return lasting_tenants(self._database)

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
