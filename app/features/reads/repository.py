"""The results of read jobs: their files, as long as these are kept."""

from __future__ import annotations

from sqlalchemy import func, insert, select

from app.access.errors import NotFound
from app.core.catalog.tables import datasets
from app.core.jobs.repository.job_ends import succeed_task
from app.core.jobs.repository.job_locks import held_by
from app.core.jobs.tables import jobs
from app.features.reads.errors import ResultExpired
from app.features.reads.jobs import FinishedRead
from app.features.reads.tables import read_files
from app.infra.db.session import Database
from app.kernel.format.result_file import RunFile


class ReadResultStore:
    """Files of read jobs in Postgres. All time is the database's clock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def finish(self, tenant_id: str, read: FinishedRead) -> bool:
        """Stores the files and the success of the job in one transaction. False, and nothing, if the claim is void."""
        rows = [
            {
                "dataset_id": read.dataset_id,
                "job_id": read.claim.job_id,
                "number": number,
                "path": file.path,
                "name": file.name,
                "row_count": file.row_count,
                "size_bytes": file.size_bytes,
                "checksum": file.checksum,
            }
            for number, file in enumerate(read.files)
        ]
        with self._database.tenant(tenant_id) as connection:
            if not succeed_task(connection, held_by([read.claim]), read.result):
                return False
            if rows:
                connection.execute(insert(read_files), rows)
        return True

    def files(self, tenant_id: str, job_id: str, *, keep_seconds: float) -> list[RunFile]:
        """Those of a job that has succeeded, in order. Raises ResultExpired if it ended longer ago, NotFound if its
        dataset is gone.
        """
        age = func.extract("epoch", func.clock_timestamp() - jobs.c.finished_at)
        finished_job = (
            select(age.label("age"), datasets.c.deleted_at)
            .join(datasets, datasets.c.id == jobs.c.dataset_id)
            .where(jobs.c.id == job_id)
        )
        columns = [read_files.c[field] for field in RunFile.__struct_fields__]
        files = select(*columns).where(read_files.c.job_id == job_id).order_by(read_files.c.number)
        with self._database.tenant(tenant_id) as connection:
            job = connection.execute(finished_job).one_or_none()
            if job is None or job.deleted_at is not None:
                raise NotFound("the dataset of the read job was deleted, and its results with it")
            # Before its files are read: those of an expired result are deleted in batches.
            if float(job.age) >= keep_seconds:
                raise ResultExpired(
                    f"results of read jobs are kept for {keep_seconds:g} seconds; read again",
                    keep_seconds=keep_seconds,
                )
            return [RunFile(**row._asdict()) for row in connection.execute(files)]
