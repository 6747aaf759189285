"""The dependencies that features are composed from: the core repositories, storage, settings, and a callback of the
relay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from app.core.catalog.repository.catalog import CatalogStore
from app.core.changes.repository import ChangelogStore
from app.core.jobs.kinds.kind import WriteProcess
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.service.request_job import RequestJob
from app.core.jobs.values import ClaimRules
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.repository.timeline import TimelineStore
from app.core.timeline.service.version_pins import VersionPins
from app.infra.db.acts import current_act
from app.infra.db.session import Database
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.storage import Storage, open_storage, prepare_storage
from app.infra.settings import Settings
from app.kernel.format.rows.row_limits import RowLimits

_GROUP_JOBS_MAX: Final = 256
"""The waiting writes of a dataset that are committed together."""


def row_limits(settings: Settings) -> RowLimits:
    """The limits of the rows of a write."""
    return RowLimits(row_bytes_max=settings.row_bytes_max, rows_max=settings.write_rows_max)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stores:
    """The core repositories, which call the participants of other rooms in their transactions."""

    database: Database
    catalog: CatalogStore
    jobs: JobStore
    timeline: TimelineStore


def _no_limit_of_its_own(_tenant_id: str) -> float | None:
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class Platform:
    """The dependencies that the features of a process share. `wake`: called after messages were added to the outbox.

    `job_seconds_of`: the time limit of a tenant's own; None for that of the settings.
    """

    settings: Settings
    stores: Stores
    storage: Storage
    reader: ParquetReader
    group: GroupAccept
    wake: Callable[[], None]
    job_seconds_of: Callable[[str], float | None] = _no_limit_of_its_own

    @classmethod
    def on(
        cls,
        settings: Settings,
        stores: Stores,
        wake: Callable[[], None],
        job_seconds_of: Callable[[str], float | None] = _no_limit_of_its_own,
    ) -> Platform:
        """The platform on these settings. Connects to no server yet."""
        storage = open_storage(settings.storage_uri)
        prepare_storage(storage, settings.storage_uri, settings.data_dir)
        return cls(
            settings=settings,
            stores=stores,
            storage=storage,
            reader=ParquetReader(storage, settings.file_cache_bytes),
            # What is recorded with an act is committed with nothing else.
            group=GroupAccept(stores.jobs.accept_all, alone=lambda: current_act() is not None),
            wake=wake,
            job_seconds_of=job_seconds_of,
        )

    @property
    def database(self) -> Database:
        return self.stores.database

    @property
    def changelog(self) -> ChangelogStore:
        return ChangelogStore(self.database)

    @property
    def leases(self) -> ReadLeaseStore:
        return ReadLeaseStore(self.database)

    @property
    def request_job(self) -> RequestJob:
        return RequestJob(jobs=self.stores.jobs, group=self.group, wake=self.wake)

    @property
    def pins(self) -> VersionPins:
        """Pins for the versions that a task of this process reads."""
        settings = self.settings
        return VersionPins(
            leases=self.leases,
            lease_seconds=settings.lease_seconds,
            heartbeat_seconds=settings.heartbeat_seconds,
        )

    def job_seconds_max(self, tenant_id: str) -> float:
        """The time limit of a tenant's job in seconds, for the kinds whose time is limited."""
        return self.job_seconds_of(tenant_id) or self.settings.job_seconds_max

    def write_seconds_max(self, tenant_id: str) -> float:
        """The time limit of a group of a tenant's writes in seconds."""
        return self.job_seconds_of(tenant_id) or self.settings.write_seconds_max

    def slice_seconds(self, process: WriteProcess | None) -> float | None:
        """The time slice of a write in such a process in seconds; None for no bound."""
        sliced = process in (WriteProcess.DERIVED, WriteProcess.ISOLATED)
        return self.settings.derived_slice_seconds if sliced else None

    @property
    def claim_rules(self) -> ClaimRules:
        settings = self.settings
        return ClaimRules(
            lease_seconds=settings.lease_seconds,
            group_jobs_max=_GROUP_JOBS_MAX,
            dataset_writers_max=settings.dataset_writers_max,
            attempts_max=settings.attempts_max,
        )
