"""The marks of rows of a version that the feed has corrected since."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.changelog.changelog_scan import ChangelogReader
from app.kernel.changelog.corrections import CORRECTION_SOURCES, resolved_corrects
from app.kernel.changelog.corrections_since import CorrectionsSince
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN


@dataclass(frozen=True, kw_only=True, slots=True)
class CorrectionMarks:
    """The changes before an offset that later ones have retracted, ascending: int64. `by`: the offset of the change
    that did, `versions`: its version.
    """

    offsets: npt.NDArray[np.int64]
    by: npt.NDArray[np.int64]
    versions: npt.NDArray[np.int64]

    @classmethod
    def read(cls, reader: ChangelogReader, corrections: CorrectionsSince) -> CorrectionMarks:
        """Reads two columns of the segments. Raises CorruptFile."""
        empty = np.zeros(0, dtype=np.int64)
        offsets, by, versions = [empty], [empty], [empty]
        for segment in corrections.segments:
            first = max(corrections.since, segment.first_offset)
            rows = reader.read_slice(
                segment.file, CORRECTION_SOURCES, segment.row_of(first), segment.end_offset - first
            )
            column = resolved_corrects(rows, segment.first_offset).column(CORRECTS_COLUMN)
            corrects = column.combine_chunks().fill_null(-1).to_numpy()
            places = np.flatnonzero((corrects >= 0) & (corrects < corrections.since))
            offsets.append(corrects[places])
            by.append(first + places)
            versions.append(np.full(len(places), segment.version, dtype=np.int64))
        every = np.concatenate(offsets)
        order = np.argsort(every, kind="stable")
        return cls(
            offsets=every[order], by=np.concatenate(by)[order], versions=np.concatenate(versions)[order]
        )

    def of(self, offsets: pa.ChunkedArray) -> tuple[pa.Array, pa.Array]:
        """For the changes that gave rows their values: what has retracted each, and its version; null for nothing."""
        change_offsets = offsets.combine_chunks().fill_null(-1).to_numpy()
        if not len(self.offsets):
            return pa.nulls(len(change_offsets), pa.int64()), pa.nulls(len(change_offsets), pa.int64())
        at = np.minimum(np.searchsorted(self.offsets, change_offsets), len(self.offsets) - 1)
        missing = self.offsets[at] != change_offsets
        return pa.array(self.by[at], mask=missing), pa.array(self.versions[at], mask=missing)
