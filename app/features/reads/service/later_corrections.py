"""Whether the rows of a read of an earlier version were corrected since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.core.catalog.values import Dataset
from app.core.changes.service.read_corrections import ReadCorrections
from app.core.timeline.ports import VersionReader
from app.kernel.format.dataset import ChangelogProducer


@dataclass(frozen=True, kw_only=True, slots=True)
class LaterCorrections:
    """Finds whether changes after a version correct rows of it."""

    timeline: VersionReader
    corrections: ReadCorrections

    def of_rows(self, dataset: Dataset, version: int, offsets: pa.ChunkedArray) -> bool | None:
        """Whether one of the rows was corrected. `offsets`: of the changes that gave them their values; int64.

        None for the latest version, and if it is not known.
        """
        if not may_be_corrected(dataset, version):
            return None
        known = offsets.combine_chunks().fill_null(-1).to_numpy()
        known = known[known >= 0].astype(np.int64)
        since = self.timeline.next_offset(dataset.tenant_id, dataset.id, version)
        corrected = self.corrections.any_of(dataset, known, since)
        # A row that does not record its change may have been corrected.
        return corrected if corrected or len(known) == len(offsets) else None

    def of_version(self, dataset: Dataset, version: int) -> bool | None:
        """Whether any row of the version was corrected; None as above."""
        if not may_be_corrected(dataset, version):
            return None
        since = self.timeline.next_offset(dataset.tenant_id, dataset.id, version)
        # Each change is corrected once, so whatever corrects one from before corrects a row of the version.
        return self.corrections.any_of(dataset, range(since), since)


def may_be_corrected(dataset: Dataset, version: int) -> bool:
    """Whether it can be known that rows of the version were corrected: a later one exists, and the feed records it."""
    return version < dataset.version and dataset.definition.changelog.producer is ChangelogProducer.FULL
