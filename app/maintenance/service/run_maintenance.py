"""Looking after tables: after commits, and when the time has come, every keeper is shown the dataset.

To add a keeper: a class with `reconcile` (see `Reconciler`), whose settings are a policy in `app/format/policies.py`;
a line
in `reconcilers` of `workers/wiring.py`. Its name there is that of its memory, so it stays as it is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from app.maintenance.values import ClaimedTable, MaintenanceClaims, Observation, Reconciler, ReconcilerRecord

_log = logging.getLogger(__name__)
# Longer than all looks at a dataset take together.
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
        """Has every keeper that has something to see look at the dataset, if it is due.

        False always: a look sees all there is, and what is committed meanwhile is looked at with the next poll, so that
        a dataset that is written all the time is not looked at all the time.
        """
        held = self.tables.claim(tenant_id, dataset_id, self.owner, _LEASE_SECONDS)
        if held is not None:
            records = {
                name: self._reconcile(held, name, reconciler) for name, reconciler in self.reconcilers.items()
            }
            times = [each.wake_at for each in records.values() if each.wake_at is not None]
            # What other releases' keepers remember stays.
            self.tables.settle(tenant_id, held, {**held.memory, **records}, min(times, default=None))
        return False

    def _reconcile(self, held: ClaimedTable, name: str, reconciler: Reconciler) -> ReconcilerRecord:
        before = held.memory.get(name)
        if before is not None and not _is_due(held, before):
            return before
        before = before or ReconcilerRecord()
        dataset = held.dataset
        observation = Observation(
            dataset=dataset, since_version=before.version, memory=before.memory, now=held.now
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
    """Whether there is a version that the keeper has not seen, or it is the time that it named."""
    in_time = before.wake_at is not None and before.wake_at <= held.now
    return in_time or (not before.failures and before.version != held.dataset.version)


def _failed(held: ClaimedTable, before: ReconcilerRecord) -> ReconcilerRecord:
    """As before, but for a pause that doubles with every failure in a row."""
    pause = min(_AFTER_A_FAULT_SECONDS * 2.0 ** min(before.failures, 16), _AFTER_A_FAULT_SECONDS_MAX)
    return ReconcilerRecord(
        version=before.version,
        wake_at=held.now + timedelta(seconds=pause),
        failures=before.failures + 1,
        memory=before.memory,
    )
