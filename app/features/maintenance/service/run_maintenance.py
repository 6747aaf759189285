"""Runs the reconcilers of a dataset after commits, and when they are due.

To add a reconciler, implement `reconcile` (see `Reconciler`) with a policy in `app/kernel/format/policies.py`, and list
it in `reconcilers` of the feature's `compose`. Its state is stored under its name there, so the name must not change.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.core.feature.reconcilers import Observation, Reconciler
from app.features.maintenance.values import ClaimedTable, MaintenanceClaims, ReconcilerRecord

_log = logging.getLogger(__name__)
# Longer than all reconcilers of a dataset take together.
_LEASE_SECONDS: Final = 120.0
_AFTER_A_FAULT_SECONDS: Final = 15.0
_AFTER_A_FAULT_SECONDS_MAX: Final = 3_600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class RunMaintenance:
    """The worker's use case. `reconcilers` by name; `owner` names this worker process."""

    tables: MaintenanceClaims
    reconcilers: Mapping[str, Reconciler]
    owner: str

    def run(self, tenant_id: str, dataset_id: str) -> bool:
        """Calls the reconcilers that are due for the dataset, if it can be claimed.

        Returns False always: a run handles all versions up to the head, and later ones wait for the next poll, so that
        a dataset with continuous writes is not reconciled continuously.
        """
        held = self.tables.claim(tenant_id, dataset_id, self.owner, _LEASE_SECONDS)
        if held is not None:
            records = {
                name: self._reconcile(held, name, reconciler) for name, reconciler in self.reconcilers.items()
            }
            times = [each.wake_at for each in records.values() if each.wake_at is not None]
            # States of reconcilers of other releases are kept.
            self.tables.settle(tenant_id, held, {**held.memory, **records}, min(times, default=None))
        return False

    def _reconcile(self, held: ClaimedTable, name: str, reconciler: Reconciler) -> ReconcilerRecord:
        before = held.memory.get(name)
        if before is not None and not _is_due(held, before):
            return before
        before = before or ReconcilerRecord()
        dataset = held.dataset
        observation = Observation(
            dataset=dataset,
            since_version=before.version,
            memory=before.memory,
            now=held.now,
            epoch=held.epoch,
        )
        try:
            result = reconciler.reconcile(observation)
        except Exception:
            _log.exception("%s of dataset %s will be tried again", name, dataset.id)
            return _failed(held, before)
        after = result.wake_after_seconds
        wake_at = None if after is None else held.now + timedelta(seconds=after)
        return ReconcilerRecord(version=dataset.version, wake_at=wake_at, memory=result.memory)


def _is_due(held: ClaimedTable, before: ReconcilerRecord) -> bool:
    """Whether the head is at another version than in the last run, or the requested time has come."""
    in_time = before.wake_at is not None and before.wake_at <= held.now
    return in_time or (not before.failures and before.version != held.dataset.version)


def _failed(held: ClaimedTable, before: ReconcilerRecord) -> ReconcilerRecord:
    """The state as before, with a pause that doubles with every failure in a row."""
    pause = min(_AFTER_A_FAULT_SECONDS * 2.0 ** min(before.failures, 16), _AFTER_A_FAULT_SECONDS_MAX)
    return ReconcilerRecord(
        version=before.version,
        wake_at=held.now + timedelta(seconds=pause),
        failures=before.failures + 1,
        memory=before.memory,
    )
