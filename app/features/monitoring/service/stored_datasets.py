"""What fills the storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.features.monitoring.repository.stored_datasets import StoredDatasetStore
from app.features.monitoring.values import StoredDataset


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestDatasets:
    """The datasets of all tenants that store most."""

    datasets: StoredDatasetStore

    def get(self, limit: int) -> Sequence[StoredDataset]:
        """The largest first, `limit` at most. Raises TooSlow, Unavailable."""
        return self.datasets.largest(limit)
