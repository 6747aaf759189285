"""Samples datasets with new versions once a minute, in one of the workers."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from app.features.monitoring.repository.dataset_samples import DatasetSampleStore
from app.features.monitoring.repository.leaders import LeaderStore

_log = logging.getLogger(__name__)
SAMPLE_TASK: Final = "samples"
ROUND_SECONDS: Final = 60.0
# The worker may miss a round before another one samples, and no more.
_LEASE_SECONDS: Final = 2.5 * ROUND_SECONDS
_DATASETS_MAX: Final = 2_000
_AT_ONCE: Final = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class SampleDatasets:
    """The samples of all tenants. `owner`: names this process."""

    samples: DatasetSampleStore
    leaders: LeaderStore
    owner: str

    def run(self) -> None:
        """One round, of a bounded number of datasets. A failure of one tenant does not affect others."""
        if not self.leaders.lead(SAMPLE_TASK, self.owner, lease_seconds=_LEASE_SECONDS):
            return
        due = sorted(self.samples.due(_DATASETS_MAX))
        for tenant_id, datasets in groupby(due, key=itemgetter(0)):
            dataset_ids = [dataset_id for _, dataset_id in datasets]
            try:
                for first in range(0, len(dataset_ids), _AT_ONCE):
                    self.samples.sample(tenant_id, dataset_ids[first : first + _AT_ONCE])
            except Exception:
                _log.exception("the datasets of tenant %s could not be sampled", tenant_id)
