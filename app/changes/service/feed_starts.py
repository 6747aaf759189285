"""Where a reader of a feed starts, if that is not an offset: at a commit, or at the position of a consumer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.catalog.ports import DatasetLookup
from app.catalog.values import Dataset
from app.changes.positions import FromTime, FromVersion


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedStarts:
    """Finds starting positions. `at_commit` finds one by tenant, dataset and start, `of_consumer` by name."""

    catalog: DatasetLookup
    at_commit: Callable[[str, str, FromVersion | FromTime], int]
    of_consumer: Callable[[Dataset, str], int]

    def find(self, dataset: Dataset, start: FromVersion | FromTime) -> tuple[Dataset, int]:
        """The position of the first change that was committed then or later, and the dataset as of that position.

        Raises NotFound, OffsetAhead.
        """
        return self._up_to(dataset, self.at_commit(dataset.tenant_id, dataset.id, start))

    def consumer(self, dataset: Dataset, name: str) -> tuple[Dataset, int]:
        """The position of a consumer, and the dataset as of that position. Raises NotFound."""
        return self._up_to(dataset, self.of_consumer(dataset, name))

    def _up_to(self, dataset: Dataset, position: int) -> tuple[Dataset, int]:
        if position > dataset.next_offset:
            # The changes up to there were committed after the dataset was read.
            dataset = self.catalog.get(dataset.tenant_id, dataset.id)
        return dataset, position
