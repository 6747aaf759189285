"""Deletes the rows of jobs that ended long ago, of unused files and of deleted datasets, old entries of the audit, and
old subjects.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from app.access.audit.repository import AuditStore
from app.access.tenants.repository.credentials import SEEN_SECONDS
from app.features.retention.repository.expired_rows import (
    DeletedDatasetStore,
    ExpiredJobStore,
    ExpiredSubjectStore,
    JobCursor,
    SubjectCursor,
)
from app.features.retention.repository.history import HistoryStore
from app.infra.files.ports import ObjectStorage
from app.kernel.format.paths import dataset_prefix

_log = logging.getLogger(__name__)
# Rows of one transaction.
_ROWS: Final = 500
# Transactions for a tenant, or for a deleted dataset, in one round: the others have their turn as well.
_BATCHES_MAX: Final = 40
# The pause after all old subjects of a tenant were checked: those to which something refers are checked every time.
_SUBJECTS_SECONDS: Final = 86_400.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpireRows:
    """`job_keep_seconds`: the time for which ended jobs are kept, and subjects of tokens that are not seen any more.

    `unused_seconds`: that of data files which no retained version uses. `grace_seconds`: that of a deleted dataset's
    rows. `audit_keep_seconds`: that of entries of the audit.
    """

    jobs: ExpiredJobStore
    deleted_datasets: DeletedDatasetStore
    audit: AuditStore
    subjects: ExpiredSubjectStore
    history: HistoryStore
    storage: ObjectStorage
    job_keep_seconds: float
    unused_seconds: float
    grace_seconds: float
    audit_keep_seconds: float
    # Where the last round of a tenant ended: jobs that are still referred to are not checked again in each round.
    _cursors: dict[str, JobCursor] = field(default_factory=dict)
    # Where the last round of a tenant ended, or the time at which the next one begins.
    _subjects: dict[str, SubjectCursor | float] = field(default_factory=dict)

    def run(self, tenant_id: str) -> int:
        """One round of a tenant, bounded in rows; returns the number of rows deleted.

        A failure with one dataset is logged, and does not affect the others.
        """
        row_count = self._expire_jobs(tenant_id) + self._expire_audit(tenant_id)
        row_count += self._expire_subjects(tenant_id)
        for dataset_id in self.history.removable(tenant_id, unused_seconds=self.unused_seconds):
            try:
                row_count += self._remove_files(tenant_id, dataset_id)
            except Exception:
                _log.exception("the unused files of dataset %s could not be removed", dataset_id)
        for dataset_id in self.deleted_datasets.ended(tenant_id, grace_seconds=self.grace_seconds):
            try:
                row_count += self._purge(tenant_id, dataset_id)
            except Exception:
                _log.exception("the rows of the deleted dataset %s could not be deleted", dataset_id)
        return row_count

    def _remove_files(self, tenant_id: str, dataset_id: str) -> int:
        return _in_batches(
            lambda: self.history.remove_files(
                tenant_id, dataset_id, unused_seconds=self.unused_seconds, limit=_ROWS
            )
        )

    def _expire_audit(self, tenant_id: str) -> int:
        return _in_batches(
            lambda: self.audit.expire(tenant_id, keep_seconds=self.audit_keep_seconds, limit=_ROWS)
        )

    def _expire_subjects(self, tenant_id: str) -> int:
        """One batch: it looks through the jobs of the tenant."""
        place = self._subjects.get(tenant_id, 0.0)
        if isinstance(place, float) and place > time.monotonic():
            return 0
        batch = self.subjects.expire(
            tenant_id,
            place if isinstance(place, SubjectCursor) else None,
            keep_seconds=self.job_keep_seconds + SEEN_SECONDS,
            limit=_ROWS,
        )
        self._subjects[tenant_id] = batch.last or time.monotonic() + _SUBJECTS_SECONDS
        return batch.subject_count

    def _expire_jobs(self, tenant_id: str) -> int:
        job_count = 0
        cursor = self._cursors.get(tenant_id)
        for _ in range(_BATCHES_MAX):
            batch = self.jobs.expire(tenant_id, cursor, keep_seconds=self.job_keep_seconds, limit=_ROWS)
            job_count += batch.job_count
            cursor = batch.last
            if cursor is None:
                # The next round starts with the oldest job again.
                self._cursors.pop(tenant_id, None)
                break
            self._cursors[tenant_id] = cursor
        return job_count

    def _purge(self, tenant_id: str, dataset_id: str) -> int:
        # The reaper deletes the files. Until then the rows show whose they are.
        if next(iter(self.storage.list(dataset_prefix(tenant_id, dataset_id))), None) is not None:
            return 0
        return _in_batches(lambda: self.deleted_datasets.purge(tenant_id, dataset_id, _ROWS))


def remove_rows_of_deleted(store: DeletedDatasetStore, tenant_id: str, dataset_id: str) -> int:
    """Removes rows of a deleted dataset, but its own; returns their number. The other rounds remove the rest."""
    return _in_batches(lambda: store.purge_dependants(tenant_id, dataset_id, _ROWS))


def _in_batches(delete: Callable[[], int]) -> int:
    """Deletes batches of rows until one has few, or the others have their turn; returns the number of rows."""
    row_count = 0
    for _ in range(_BATCHES_MAX):
        rows = delete()
        row_count += rows
        if rows < _ROWS:
            break
    return row_count
