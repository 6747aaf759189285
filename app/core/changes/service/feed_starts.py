"""Where a reader of a feed starts, if that is not an offset: at a commit, or at the position of a consumer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import FromTime, FromVersion, SnapshotPosition


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedStarts:
    """Finds starting positions. `at_commit` finds one by tenant, dataset and start, `of_consumer` by name."""

    catalog: DatasetLookup
    at_commit: Callable[[str, str, FromVersion | FromTime], int]
    of_consumer: Callable[[Dataset, str], int | SnapshotPosition]

    def find(self, dataset: Dataset, start: FromVersion | FromTime) -> tuple[Dataset, int]:
        """The position of the first change that was committed then or later, and the dataset as of that position.

        Raises NotFound, OffsetAhead.
        """
        position = self.at_commit(dataset.tenant_id, dataset.id, start)
        return self._read_again(dataset, position > dataset.next_offset), position

    def consumer(self, dataset: Dataset, name: str) -> tuple[Dataset, int | SnapshotPosition]:
        """The position of a consumer, and the dataset as of that position. Raises NotFound."""
        position = self.of_consumer(dataset, name)
        if isinstance(position, SnapshotPosition):
            return self._read_again(dataset, (position.version or 0) > dataset.version), position
        return self._read_again(dataset, position > dataset.next_offset), position

    def _read_again(self, dataset: Dataset, later: bool) -> Dataset:
        """`later`: what a position is at was committed after the dataset was read."""
        return self.catalog.get(dataset.tenant_id, dataset.id) if later else dataset
