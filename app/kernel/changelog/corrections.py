"""Corrections: the earlier changes that the changes of a commit retract.

The values of a corrected or retracted row come from one earlier change; a -C or -R refers to it by its offset. The same
offset is stored with the row (see `app.kernel.format.rows.meta_columns`), so a change is retracted once at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, CORRECTS_FIELD, resolved_offsets

# The columns to read from a changelog file.
CORRECTION_SOURCES = pa.schema([OP_FIELD, CORRECTS_FIELD])


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """The change at `offset` was retracted by the change at `by`: a -C, whose +C follows at `by` + 1, or a -R."""

    offset: int
    by: int
    op: Op


@dataclass(kw_only=True, slots=True)
class CorrectedBounds:
    """The least and greatest offset that the rows of a changelog file retract, in their stored form; None without any.

    Offsets of the file's own commit are stored below zero, later ones lower, and all are greater than any other.
    """

    minimum: int | None = None
    maximum: int | None = None

    def add(self, stored_offsets: pa.ChunkedArray) -> None:
        """Adds the offsets of more rows."""
        offsets = pc.drop_null(stored_offsets).to_numpy()
        later = offsets < 0
        earlier, own = offsets[~later], offsets[later]
        if len(earlier):
            self._widen(int(earlier.min()), int(earlier.max()))
        if len(own):
            self._widen(int(own.max()), int(own.min()))

    def _widen(self, first: int, last: int) -> None:
        self.minimum = first if self.minimum is None or _order(first) < _order(self.minimum) else self.minimum
        self.maximum = last if self.maximum is None or _order(last) > _order(self.maximum) else self.maximum


def _order(bound: int) -> tuple[bool, int]:
    return bound < 0, abs(bound)


def resolved_bound(bound: int | None, first_offset: int) -> int | None:
    """The true offset of a bound, after the commit has assigned the file's first offset."""
    return bound if bound is None or bound >= 0 else first_offset - 1 - bound


def corrections_in(
    rows: pa.Table, first_offset: int, offsets: Sequence[int] | npt.NDArray[np.int64] | range
) -> Iterator[Correction]:
    """The rows of a changelog file, or of a slice of it, that retract one of these changes, in order.

    `rows` has `CORRECTION_SOURCES` with true offsets; its first row has the offset `first_offset`. `offsets`: a range,
    or offsets in any order.
    """
    corrects = rows.column(CORRECTS_COLUMN).combine_chunks().fill_null(-1).to_numpy()
    if isinstance(offsets, range):
        places = np.flatnonzero((corrects >= offsets.start) & (corrects < offsets.stop))
    else:
        places = np.flatnonzero(np.isin(corrects, np.asarray(offsets, dtype=np.int64)))
    ops = rows.column(OP_COLUMN).combine_chunks().to_numpy()
    for at in places:
        yield Correction(offset=int(corrects[at]), by=first_offset + int(at), op=Op(int(ops[at])))


def resolved_corrects(rows: pa.Table, first_offset: int) -> pa.Table:
    """The rows with true offsets in `_hw_corrects`. `first_offset`: that of the file's first row."""
    at = rows.schema.get_field_index(CORRECTS_COLUMN)
    return rows.set_column(at, CORRECTS_FIELD, resolved_offsets(rows.column(CORRECTS_COLUMN), first_offset))
