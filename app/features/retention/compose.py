"""Composes the use cases that remove what is no longer kept."""

from __future__ import annotations

import os
from functools import partial
from typing import Final

from app.access.audit.repository import AuditStore
from app.access.tenants.repository.usage import UsageStore
from app.core.compose import reply_store
from app.core.feature.feature import Feature, Worker
from app.core.feature.reconcilers import Reconciler
from app.core.jobs.kinds.clean import CLEAN
from app.core.jobs.service.run_tasks import TaskHandlers, handled
from app.core.platform import Platform
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.features.maintenance.compose import table_service_requests
from app.features.retention.repository.ending_tenants import EndingTenantStore
from app.features.retention.repository.expired_rows import (
    DeletedDatasetStore,
    ExpiredJobStore,
    ExpiredSubjectStore,
)
from app.features.retention.repository.feed import RetentionStore
from app.features.retention.repository.history import HistoryStore
from app.features.retention.repository.references import ReferencedFileStore, ReferenceStore
from app.features.retention.repository.stored_bytes import StoredBytesStore
from app.features.retention.service.check_files import CheckFiles
from app.features.retention.service.end_tenants import EndTenants
from app.features.retention.service.expired_rows import ExpireRows, remove_rows_of_deleted
from app.features.retention.service.feed import Retain
from app.features.retention.service.history_reconciler import HistoryReconciler
from app.features.retention.service.reaper import Reap
from app.features.retention.service.run_clean import RunClean
from app.features.retention.service.usage import SAMPLE_SECONDS, SampleUsage
from app.infra.db.acts import record_act
from app.infra.db.session import Database
from app.infra.files.lookups.hot_folder import remove_copies
from app.infra.files.s3.orphaned_parts import orphaned_parts
from app.infra.files.storage import Storage
from app.infra.runtime.loops import Loop

# The interval at which a worker searches for files that no commit refers to.
_REAP_SECONDS: Final = 900.0


def reaper(platform: Platform) -> Reap:
    """Removes files that nothing refers to."""
    settings = platform.settings
    return Reap(
        references=ReferenceStore(platform.database),
        storage=platform.storage,
        grace_seconds=settings.orphan_grace_seconds,
        upload_seconds_max=settings.upload_keep_seconds,
        result_seconds_max=settings.read_result_seconds,
        parts=orphaned_parts(settings.storage_uri, os.environ),
        remove_copies=partial(remove_copies, settings.data_dir / "hot"),
        remove_rows=partial(remove_rows_of_deleted, DeletedDatasetStore(platform.database)),
        sample=partial(StoredBytesStore(platform.database).sample, older_than_seconds=0.0),
        record=record_act,
    )


def check_files(database: Database, storage: Storage) -> CheckFiles:
    """Compares the storage with the files that rows refer to."""
    return CheckFiles(files=ReferencedFileStore(database), storage=storage)


def _retain(platform: Platform) -> Retain:
    """Cuts off the beginnings of feeds, and removes idempotency keys and rows that have expired."""
    settings = platform.settings
    rows = ExpireRows(
        jobs=ExpiredJobStore(platform.database),
        deleted_datasets=DeletedDatasetStore(platform.database),
        audit=AuditStore(platform.database),
        subjects=ExpiredSubjectStore(platform.database),
        history=HistoryStore(platform.database),
        storage=platform.storage,
        job_keep_seconds=settings.job_keep_seconds,
        unused_seconds=settings.unused_file_seconds,
        grace_seconds=settings.orphan_grace_seconds,
        audit_keep_seconds=settings.audit_keep_seconds,
    )
    return Retain(
        feeds=RetentionStore(platform.database),
        keys=reply_store(platform),
        rows=rows,
        follower_lag_seconds=settings.follower_lag_seconds,
    )


def end_tenants(platform: Platform) -> EndTenants:
    """Deletes the data of tenants."""
    settings = platform.settings
    return EndTenants(
        tenants=EndingTenantStore(platform.database),
        catalog=platform.stores.catalog,
        storage=platform.storage,
        lease_seconds=settings.lease_seconds,
        grace_seconds=settings.orphan_grace_seconds,
        remove_copies=partial(remove_copies, settings.data_dir / "hot"),
    )


def sample_usage(platform: Platform) -> SampleUsage:
    """Sums up what tenants store."""
    return SampleUsage(store=StoredBytesStore(platform.database), usage=UsageStore(platform.database))


def _tasks(worker: Worker[object]) -> TaskHandlers:
    platform = worker.platform
    clean = RunClean(
        catalog=platform.stores.catalog,
        jobs=platform.stores.jobs,
        history=HistoryStore(platform.database),
        archives=TimelineArchiveStore(platform.database),
        files=TimelineFileStore(platform.storage, platform.reader),
        reap=reaper(platform),
        unused_seconds=platform.settings.unused_file_seconds,
    )
    return handled(CLEAN, clean)


def _reconcilers(worker: Worker[object]) -> dict[str, Reconciler]:
    history, cleans = HistoryStore(worker.platform.database), table_service_requests(worker.platform)
    return {"history": HistoryReconciler(history=history, cleans=cleans)}


def _loops(platform: Platform) -> tuple[Loop, ...]:
    settings = platform.settings
    return (
        Loop("reaper", reaper(platform).run, every_seconds=_REAP_SECONDS, waits_first=True),
        Loop("retention", _retain(platform).run, every_seconds=settings.retention_seconds, waits_first=True),
        Loop(
            "deleted tenants",
            end_tenants(platform).run,
            every_seconds=settings.poll_seconds,
            waits_first=True,
        ),
        Loop("stored bytes", sample_usage(platform).run, every_seconds=SAMPLE_SECONDS, waits_first=True),
    )


FEATURE: Final[Feature[object]] = Feature(
    name="retention", tasks=_tasks, reconcilers=_reconcilers, loops=_loops
)
