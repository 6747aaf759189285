"""Reaping orphans: files that no commit refers to and that no job can still publish."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from app.features.retention.repository.references import ReferenceStore
from app.features.retention.values import ReapReport
from app.infra.files.ports import ObjectStorage
from app.infra.files.s3.orphaned_parts import OrphanedParts
from app.kernel.format.paths import dataset_prefix, instant_of, is_marker, job_of, maintenance_epoch_of

PARTS_SECONDS: Final = 86_400.0
"""No process writes a file for so long: jobs and requests end before."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reap:
    """Deletes a file only if it is unreferenced, its instant or job has ended, and it is older than the grace.

    While a backup runs, it deletes nothing. The grace (seconds) covers what no row shows yet: a body that is still
    arriving. It is never what keeps a referenced file, so a wrong clock cannot lose one. `parts`: of uploads to S3 that
    ended with their process. `remove_copies`: removes the copies of deleted files on the disk of this machine.
    `remove_rows`: removes rows of a deleted dataset that has no file any more, which count its bytes. `sample`: has
    what a tenant stores summed up. `record`: records the request, before transactions of other tenants than its own.
    """

    references: ReferenceStore
    storage: ObjectStorage
    grace_seconds: float
    upload_seconds_max: float
    result_seconds_max: float
    parts: OrphanedParts | None = None
    remove_copies: Callable[[Sequence[str]], None] = lambda _paths: None
    remove_rows: Callable[[str, str], object] = lambda _tenant_id, _dataset_id: None
    sample: Callable[[str], object] = lambda _tenant_id: None
    record: Callable[[], None] = lambda: None

    def run(self) -> int:
        """One round over all datasets; returns the number of files deleted. A failure of one does not affect others."""
        file_count = failures = 0
        for tenant_id in self.references.tenants():
            try:
                for dataset_id, absent in self.references.datasets(tenant_id):
                    try:
                        file_count += self._reap(tenant_id, dataset_id, absent)
                    except Exception:
                        failures += 1
                        _log.exception("the orphans of dataset %s could not be deleted", dataset_id)
            except Exception:
                failures += 1
                _log.exception("the datasets of tenant %s could not be listed", tenant_id)
        self._abort_uploads()
        if file_count or failures:
            _log.info(
                "deleted %d orphan files; %d failures, tried again in the next round", file_count, failures
            )
        return file_count

    def _abort_uploads(self) -> None:
        """Removes the parts of uploads that were begun so long ago that no process completes them."""
        if self.parts is None:
            return
        try:
            upload_count = self.parts.abort(PARTS_SECONDS)
        except Exception as error:
            # A storage need not have such requests, and a rule of the bucket can do the same.
            _log.warning("unfinished uploads stay in the storage: %s", error)
            return
        if upload_count:
            _log.info("aborted %d uploads that no process had completed", upload_count)

    def dataset(self, tenant_id: str, dataset_id: str) -> int:
        """One round of a live dataset; returns the number of files deleted."""
        return self._reap(tenant_id, dataset_id, absent=False)

    def deleted_datasets(self, seconds_max: float) -> ReapReport:
        """Deletes the files of deleted datasets without the grace, those that were deleted last first.

        No body for such a dataset is accepted any more. Ends after `seconds_max`, and a dataset that is under way.
        Raises Unavailable.
        """
        self.record()
        ends, file_count, complete = time.monotonic() + seconds_max, 0, True
        for tenant_id in self.references.tenants():
            report = self._deleted_datasets(tenant_id, ends)
            file_count += report.files
            complete = complete and report.complete
            if not complete and time.monotonic() > ends:
                break
        return ReapReport(files=file_count, complete=complete)

    def _deleted_datasets(self, tenant_id: str, ends: float) -> ReapReport:
        file_count, complete = 0, True
        for dataset_id, absent in self.references.datasets(tenant_id):
            if not absent:
                continue
            if time.monotonic() > ends:
                complete = False
                break
            try:
                file_count += self._reap(tenant_id, dataset_id, absent=True, at_once=True)
            except Exception:
                complete = False
                _log.exception("the files of the deleted dataset %s could not be deleted", dataset_id)
        if file_count:
            self.sample(tenant_id)
        return ReapReport(files=file_count, complete=complete)

    def _reap(self, tenant_id: str, dataset_id: str, absent: bool, *, at_once: bool = False) -> int:
        """`absent`: whether the dataset was deleted. `at_once`: without the grace."""
        before = datetime.now(UTC) - timedelta(seconds=0.0 if at_once else self.grace_seconds)
        prefix = dataset_prefix(tenant_id, dataset_id)
        # A marker may be replaced under its name at any time, so its name does not show whether it is an orphan.
        old = [
            path
            for path, write_time in self.storage.list(prefix)
            if write_time < before and (absent or not is_marker(path))
        ]
        if not old:
            return 0
        self.references.expire_uploads(tenant_id, dataset_id, older_than_seconds=self.upload_seconds_max)
        self.references.expire_results(tenant_id, dataset_id, older_than_seconds=self.result_seconds_max)
        self.references.expire_replaced(tenant_id, dataset_id, older_than_seconds=self.grace_seconds)
        # The order matters. What is unfinished here is kept; what had ended by now has either published its files,
        # and the question below sees them, or never will. The other way round, a commit in between would lose them.
        busy_instants, busy_jobs, busy_claim = self.references.unfinished(tenant_id, dataset_id)
        referenced_paths = set() if absent else self.references.referenced(tenant_id, dataset_id, old)
        orphans = [
            path
            for path in old
            if path not in referenced_paths
            and instant_of(path) not in busy_instants
            and job_of(path) not in busy_jobs
            if busy_claim is None or maintenance_epoch_of(path) != busy_claim
        ]
        # After the question above: nothing that a later backup contains refers to these files.
        if not orphans or self.references.deletions_held():
            return 0
        self.storage.delete(orphans)
        self.remove_copies(orphans)
        if absent and next(iter(self.storage.list(prefix)), None) is None:
            self.remove_rows(tenant_id, dataset_id)
        return len(orphans)
