"""Automatic tags: at the end of each period the last version of a dataset gets the name of the period."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol

from app.core.catalog.values import Dataset
from app.core.feature.reconcilers import Observation, ReconcileResult
from app.features.versions.tag_periods import beginning, end, ended, name_of, outlived
from app.kernel.format.policies import TagPolicy

_log = logging.getLogger(__name__)
# At most this many periods that ended since the previous run are tagged.
_PERIODS_MAX: Final = 100
# The reconciler runs this long after the end of a period, never before it.
_MARGIN_SECONDS: Final = 0.5


class AutomaticTags(Protocol):
    """Tags that the service makes without a request."""

    def add_automatic(self, tenant_id: str, dataset_id: str, name: str, before: datetime) -> int | None:
        """Tags the last version that was committed before the moment; returns it.

        None if there is no such version, it is no longer kept, or the name is taken. Raises NotFound.
        """
        ...

    def automatic(self, tenant_id: str, dataset_id: str) -> Sequence[str]:
        """The names of those tags."""
        ...

    def remove(self, tenant_id: str, dataset_id: str, names: Sequence[str]) -> int:
        """Removes names, whose versions may then be cleaned. Returns how many were removed."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class TagReconciler:
    """Carries out `services.tags`. It stores the time up to which the periods have been tagged."""

    tags: AutomaticTags

    def reconcile(self, observation: Observation) -> ReconcileResult:
        policy = observation.dataset.definition.services.tags
        if policy is None:
            return ReconcileResult()
        # The first period to be tagged is the one in which the policy was first seen.
        since = beginning(policy.period, observation.now)
        if observation.memory.get("period") == policy.period.value:
            since = datetime.fromisoformat(observation.memory["since"])
        limit = _PERIODS_MAX if policy.keep is None else min(policy.keep, _PERIODS_MAX)
        ends = ended(policy.period, since, observation.now, limit)
        for each in ends:
            self._tag(observation.dataset, policy, each)
        if ends and policy.keep is not None:
            self._remove_outdated(observation.dataset, policy, policy.keep)
        next_end = end(policy.period, observation.now)
        return ReconcileResult(
            memory={"period": policy.period.value, "since": max([since, *ends]).isoformat()},
            wake_after_seconds=(next_end - observation.now).total_seconds() + _MARGIN_SECONDS,
        )

    def _tag(self, dataset: Dataset, policy: TagPolicy, period_end: datetime) -> None:
        name = name_of(policy.period, period_end - timedelta(microseconds=1))
        version = self.tags.add_automatic(dataset.tenant_id, dataset.id, name, period_end)
        if version is not None:
            _log.info("version %d of dataset %s is tagged %s", version, dataset.id, name)

    def _remove_outdated(self, dataset: Dataset, policy: TagPolicy, keep: int) -> None:
        names = outlived(policy.period, self.tags.automatic(dataset.tenant_id, dataset.id), keep)
        if names:
            self.tags.remove(dataset.tenant_id, dataset.id, names)
