"""What fills the storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.features.monitoring.repository.stored_datasets import StoredDatasetStore
from app.features.monitoring.values import StoredDataset, StoredSums


@dataclass(frozen=True, kw_only=True, slots=True)
class LargestDatasets:
    """The datasets of all tenants that store most, and what all store.

    `files_on_disk`: whether the storage is a folder. `database_on_host`: whether Postgres is on this machine.
    """

    datasets: StoredDatasetStore
    files_on_disk: bool
    database_on_host: bool

    def get(self, limit: int) -> Sequence[StoredDataset]:
        """The largest first, `limit` at most. Raises TooSlow, Unavailable."""
        return self.datasets.largest(limit)

    def sums(self) -> StoredSums:
        """What all datasets together, and the database, have. Raises TooSlow, Unavailable."""
        return self.datasets.sums(files_on_disk=self.files_on_disk, database_on_host=self.database_on_host)
