"""Rounds of retention over rows of jobs and deleted datasets."""

from __future__ import annotations

from app.access.audit.repository import AuditStore
from app.features.retention.repository.expired_rows import (
    DeletedDatasetStore,
    ExpiredJobStore,
    ExpiredSubjectStore,
)
from app.features.retention.repository.history import HistoryStore
from app.features.retention.service.expired_rows import ExpireRows
from app.infra.db.session import Database
from app.infra.files.ports import ObjectStorage


def expire_rows(database: Database, storage: ObjectStorage, *, job_keep_seconds: float) -> ExpireRows:
    """Rounds that keep ended jobs for this time, and rows of deleted datasets no longer than their files."""
    return ExpireRows(
        jobs=ExpiredJobStore(database),
        deleted_datasets=DeletedDatasetStore(database),
        audit=AuditStore(database),
        subjects=ExpiredSubjectStore(database),
        history=HistoryStore(database),
        storage=storage,
        job_keep_seconds=job_keep_seconds,
        unused_seconds=0,
        grace_seconds=0,
        audit_keep_seconds=34_560_000.0,
    )
