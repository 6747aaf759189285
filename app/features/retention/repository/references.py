"""References to files, for the reaper."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import String, delete, func, select
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.sql.expression import cast

from app.access.tenants.tables import tenants
from app.core.catalog.tables import datasets, uploads
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import JobState
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
from app.infra.db.any_of import any_of
from app.infra.db.deletion_hold import deletions_held
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

_UNFINISHED_JOB = jobs.c.state.in_([JobState.QUEUED.value, JobState.RUNNING.value])
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
)


class ReferenceStore:
    """References to files, of all tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def tenants(self) -> list[str]:
        """Ids of all tenants."""
        with self._database.relay() as connection:
            return list(connection.execute(select(tenants.c.tenant_id)).scalars())

    def datasets(self, tenant_id: str) -> list[tuple[str, bool]]:
        """Ids of all datasets; true for a deleted one."""
        query = select(datasets.c.id, datasets.c.deleted_at.is_not(None))
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
        reading = select(1).where(_UNFINISHED_JOB, jobs.c.claimed_at <= until)
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
        open_jobs = select(jobs.c.id).where(jobs.c.dataset_id == dataset_id, _UNFINISHED_JOB)
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
                reading = select(cast(path, String)).where(jobs.c.dataset_id == dataset_id, _UNFINISHED_JOB)
                referenced_paths.update(connection.execute(reading).scalars())
            for column in _REFERENCES:
                query = select(column).where(column.table.c.dataset_id == dataset_id, any_of(column, paths))
                referenced_paths |= set(connection.execute(query).scalars())
        return referenced_paths & set(paths)
