"""Datasets that writes register: made with the job of the write, and ended if nothing was written."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, exists, select

from app.core.catalog.errors import DatasetInUse
from app.core.catalog.repository.catalog import end_dataset
from app.core.catalog.repository.live_datasets import LiveDatasets
from app.core.catalog.repository.participants import CatalogParticipants
from app.core.catalog.tables import datasets, heads
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.tables import jobs
from app.core.jobs.values import Accepted, JobQueue, JobState, NewJob
from app.infra.db.session import Database
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import Fault, HeadwaterError

_WITHOUT_OUTPUT: Final = (JobState.FAILED.value, JobState.CANCELLED.value)


class CreationStore:
    """Registers datasets with their first writes."""

    def __init__(self, database: Database, live: LiveDatasets) -> None:
        self._database = database
        self._live = live

    def accept(self, tenant_id: str, definition: DatasetDefinition, new: NewJob) -> Accepted:
        """Registers the dataset of the job, whose id it has chosen, and accepts the job: both, or neither.

        Raises DatasetExists if a live dataset has the name, QuotaExceeded, Unavailable.
        """
        with self._database.tenant(tenant_id) as connection:
            self._live.insert(connection, new.dataset_id, definition)
            [outcome] = accept_jobs(connection, [new])
            if isinstance(outcome, HeadwaterError):
                raise outcome
            return outcome


class CreationParticipant:
    """The ends of writes to datasets that a write has registered. `catalog`: what takes part in deletions."""

    def __init__(self, catalog: CatalogParticipants) -> None:
        self._catalog = catalog

    def job_failed(self, connection: Connection, job_id: str, kind: JobKind, fault: Fault) -> None:  # noqa: ARG002
        """See `_end_unwritten`."""
        self._end_unwritten(connection, job_id, kind)

    def job_cancelled(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        """See `_end_unwritten`."""
        self._end_unwritten(connection, job_id, kind)

    def _end_unwritten(self, connection: Connection, job_id: str, kind: JobKind) -> None:
        """Deletes the dataset of the write if a write has registered it, none has succeeded, and none is left.

        What is locked is in use, and stays: its locks come before those of jobs, so that waiting here could deadlock.
        """
        if kind is not JobKind.WRITE:
            return
        its_dataset = select(jobs.c.dataset_id).where(jobs.c.id == job_id).scalar_subquery()
        head = (
            select(heads.c.dataset_id)
            .where(heads.c.dataset_id == its_dataset, heads.c.version == 0)
            .with_for_update(skip_locked=True)
        )
        dataset_id = connection.execute(head).scalar_one_or_none()
        if dataset_id is None or not _is_registered_by_write(connection, dataset_id):
            return
        live = (
            select(datasets.c.id)
            .where(datasets.c.id == dataset_id, datasets.c.deleted_at.is_(None))
            .with_for_update(skip_locked=True)
        )
        if connection.execute(live).scalar_one_or_none() is None:
            return
        others = exists().where(jobs.c.dataset_id == dataset_id, jobs.c.state.not_in(_WITHOUT_OUTPUT))
        if connection.execute(select(others)).scalar_one():
            return
        try:
            self._catalog.derivations.check_unread(connection, dataset_id)
        except DatasetInUse:
            return
        end_dataset(connection, dataset_id, self._catalog)


def _is_registered_by_write(connection: Connection, dataset_id: str) -> bool:
    """Whether the first job of the dataset has registered it."""
    first = (
        select(jobs.c.request, jobs.c.lane)
        .where(jobs.c.dataset_id == dataset_id)
        .order_by(jobs.c.seq)
        .limit(1)
    )
    row = connection.execute(first).one()
    return bool(row.lane == JobQueue.WRITES.value and row.request.creates)
