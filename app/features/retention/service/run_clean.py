"""Runs cleans: expires versions beyond the history, archives old instants, and deletes orphaned files."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.clean import CLEAN, CleanResult, CleanTask
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Job
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.features.retention.repository.history import HistoryStore
from app.features.retention.service.reaper import Reap
from app.features.retention.values import ARCHIVED_MIN, HistoryStart
from app.kernel.format.paths import dataset_prefix, timeline_path

_log = logging.getLogger(__name__)
# Rows that one transaction deletes: commits may have to wait for it.
_FILES: Final = 500
# Instants in one file, at most.
_ARCHIVED_MAX: Final = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class RunClean:
    """Runs the tasks of cleans. Each step can be repeated, by any worker.

    `unused_seconds`: the time for which unused files stay. Those that are younger are removed by a later round of
    retention, and their bytes by the reaper.
    """

    catalog: DatasetLookup
    jobs: JobStore
    history: HistoryStore
    archives: TimelineArchiveStore
    files: TimelineFileStore
    reap: Reap
    unused_seconds: float
    archived_min: int = ARCHIVED_MIN

    def run(self, job: Job, task: CleanTask, tag: str) -> None:
        """Raises NotFound (dataset gone), StorageFull."""
        dataset = self.catalog.get(job.tenant_id, job.dataset_id)
        policy = task.history or dataset.definition.services.history
        beginning = HistoryStart(earliest_version=dataset.earliest_version, expired_versions=0)
        if policy is not None:
            beginning = self.history.advance_start(job.tenant_id, job.dataset_id, policy)
        files, size_bytes = self._expire(dataset)
        instant_count = self._archive(dataset, job)
        # Last: by now nothing refers to the files that have been unused long enough.
        orphan_count = self.reap.dataset(job.tenant_id, job.dataset_id)
        _log.info("clean %s left the versions from %d on", tag, beginning.earliest_version)
        self.jobs.succeed(
            job.tenant_id,
            job.claim,
            CLEAN.stored(
                CleanResult(
                    earliest_version=beginning.earliest_version,
                    versions_expired=beginning.expired_versions,
                    files_expired=files,
                    bytes_expired=size_bytes,
                    instants_archived=instant_count,
                    files_deleted=orphan_count,
                )
            ),
        )

    def _expire(self, dataset: Dataset) -> tuple[int, int]:
        """Finds the files that no retained version uses, and deletes the rows of those that have been unused for long.

        Returns the number of files found, and bytes. They include files of versions that expired earlier, and whose
        name or read lease has ended since.
        """
        place = dataset.tenant_id, dataset.id
        files = size_bytes = since = 0
        while True:
            batch = self.history.expire_files(*place, since, _FILES)
            files, size_bytes, since = files + batch.files, size_bytes + batch.bytes, batch.until
            if batch.files < _FILES:
                break
        while self.history.remove_files(*place, unused_seconds=self.unused_seconds, limit=_FILES) == _FILES:
            pass
        return files, size_bytes

    def _archive(self, dataset: Dataset, job: Job) -> int:
        """Archives old instants; returns their number."""
        policy = dataset.definition.services.timeline
        prefix = dataset_prefix(dataset.tenant_id, dataset.id)
        instant_count = 0
        while policy is not None:
            records = self.archives.oldest(dataset.tenant_id, dataset.id, policy.instants, _ARCHIVED_MAX)
            if len(records) < self.archived_min:
                break
            ids = [record.id for record in records]
            archive = self.files.write(timeline_path(prefix, ids[0], ids[-1], job.id, job.epoch), records)
            if not self.archives.archive(dataset.tenant_id, dataset.id, job.claim, archive, ids):
                break
            instant_count += len(records)
        return instant_count
