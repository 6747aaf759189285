"""Deletes all data of tenants whose deletion was requested."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from app.access.errors import NotFound
from app.core.catalog.errors import DatasetInUse
from app.core.catalog.repository.catalog import CatalogStore
from app.features.retention.repository.ending_tenants import EndingTenantStore
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import ObjectStorage

_log = logging.getLogger(__name__)
_FILES: Final = 500
_ROWS: Final = 1_000
# Steps for a tenant in one round: the others have their turn as well.
_STEPS_MAX: Final = 100
# The pause after the first failure with a tenant. It doubles with each further one.
_PAUSE_SECONDS: Final = 5.0
_PAUSE_SECONDS_MAX: Final = 60.0
_DOUBLINGS_MAX: Final = 16
_LOG_SECONDS: Final = 60.0


class _Failing:
    """The failures in a row with a tenant. Times are those of the clock of `EndTenants`."""

    __slots__ = ("count", "logged_at", "next_at")

    def __init__(self) -> None:
        self.count = 0
        self.logged_at = 0.0
        self.next_at = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class EndTenants:
    """Deletes datasets, files and rows, until nothing is left. Each step can be repeated, by any worker.

    `lease_seconds`: the time in which a worker notices that its job was cancelled. `grace_seconds`: the time for which
    the data of a deleted tenant are looked for again: a request that had begun before may still store a file.
    """

    tenants: EndingTenantStore
    catalog: CatalogStore
    storage: ObjectStorage
    lease_seconds: float
    grace_seconds: float
    remove_copies: Callable[[Sequence[str]], None] = lambda _paths: None
    clock: Callable[[], float] = time.monotonic
    failing: dict[str, _Failing] = field(default_factory=dict)

    def run(self) -> None:
        """One round over all such tenants. A failure with one does not affect the others.

        A tenant that failed is left out for a time that grows from 5 s to a minute. Its first failure is logged with
        the trace, and then the number of failures once a minute at most.
        """
        ending = self.tenants.ending(after_seconds=self.grace_seconds)
        for tenant_id in self.failing.keys() - set(ending):
            del self.failing[tenant_id]
        for tenant_id in ending:
            failing = self.failing.get(tenant_id)
            if failing is not None and self.clock() < failing.next_at:
                continue
            try:
                self._end(tenant_id)
            except Exception as error:
                self._failed(tenant_id, error)
            else:
                self.failing.pop(tenant_id, None)

    def _failed(self, tenant_id: str, error: Exception) -> None:
        failing, now = self.failing.setdefault(tenant_id, _Failing()), self.clock()
        pause = _PAUSE_SECONDS * 2.0 ** min(failing.count, _DOUBLINGS_MAX)
        failing.next_at = now + min(pause, _PAUSE_SECONDS_MAX)
        failing.count += 1
        first = failing.count == 1
        if first or now - failing.logged_at >= _LOG_SECONDS:
            failing.logged_at = now
            message = "the data of the deleted tenant %s could not be deleted yet (%s: %s; %d times in a row)"
            _log.warning(
                message,
                tenant_id,
                type(error).__name__,
                error,
                failing.count,
                exc_info=error if first else None,
            )

    def _end(self, tenant_id: str) -> None:
        if self._delete_datasets(tenant_id) or self.tenants.is_busy(
            tenant_id, lease_seconds=self.lease_seconds
        ):
            return
        # A backup that begins later knows that the tenant is being deleted.
        if self.tenants.deletions_held():
            return
        if not _repeat(lambda: self._delete_files(tenant_id), _FILES):
            return
        if not _repeat(lambda: self.tenants.delete_rows(tenant_id, _ROWS), _ROWS):
            return
        remaining_rows = self.tenants.rows_left(tenant_id)
        files = sum(1 for _ in self.storage.list(tenant_id))
        if files == 0 and not any(remaining_rows.values()):
            self.tenants.cleared(tenant_id, remaining_rows, files)

    def _delete_datasets(self, tenant_id: str) -> int:
        """Deletes datasets, views before what they read, and cancels their jobs; returns how many are left."""
        dataset_ids = self.tenants.live_datasets(tenant_id)
        while dataset_ids:
            remaining = [each for each in dataset_ids if not self._delete_dataset(tenant_id, each)]
            if len(remaining) == len(dataset_ids):
                break
            dataset_ids = remaining
        return len(dataset_ids)

    def _delete_dataset(self, tenant_id: str, dataset_id: str) -> bool:
        try:
            self.catalog.delete(tenant_id, dataset_id, version=None)
        except DatasetInUse:
            return False
        except NotFound:
            pass
        return True

    def _delete_files(self, tenant_id: str) -> int:
        paths = [path for path, _ in islice(self.storage.list(tenant_id), _FILES)]
        if paths:
            size_bytes = sum(map(self._size, paths))
            self.storage.delete(paths)
            self.remove_copies(paths)
            self.tenants.count_files(tenant_id, len(paths), size_bytes)
        return len(paths)

    def _size(self, path: str) -> int:
        try:
            return self.storage.size(path)
        except CorruptFile:
            # Another worker has deleted it meanwhile.
            return 0


def _repeat(step: Callable[[], int], full: int) -> bool:
    """Repeats a step while it does as much as it may; false if there is more to do."""
    return any(step() < full for _ in range(_STEPS_MAX))
