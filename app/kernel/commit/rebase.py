"""Rebasing: the positions of rows that were deleted during a rewrite, in the rewritten files.

A rewrite that preserves the order of rows concatenates the live rows of its files, bucket by bucket. So the position of
a row in the new files follows from the number of live rows before it, and no row has to be read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from pyroaring import FrozenBitMap

from app.kernel.format.file_group import DataFile, Slot
from app.kernel.format.index.deletion_vector import positions_of

_EMPTY_BITMAP = FrozenBitMap()


class Rewritten(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was rewritten: the rows that were deleted at that time, and those that are deleted now."""

    file: DataFile
    before: FrozenBitMap | None
    now: FrozenBitMap | None


def rebased(
    rewritten: Sequence[Rewritten], new_files: Sequence[DataFile]
) -> Mapping[str, npt.NDArray[np.int64]]:
    """The positions of the deleted rows, by path of the `new_files`, in the order in which these were started.

    Files without deleted rows are omitted. Raises ValueError if the written files do not contain exactly the live rows.
    """
    positions_by_path: dict[str, npt.NDArray[np.int64]] = {}
    for slot in sorted({each.file.slot for each in rewritten} | {file.slot for file in new_files}):
        places = [place for place in _places(slot, rewritten) if len(place)]
        targets = [file for file in new_files if file.slot == slot]
        ends = np.cumsum([file.row_count for file in targets])
        live_rows = sum(_lived(each) for each in rewritten if each.file.slot == slot)
        if live_rows != (int(ends[-1]) if targets else 0):
            raise ValueError(f"{slot} had {live_rows} live rows, but {ends[-1:]} were written")
        if not places:
            continue
        places_all = np.concatenate(places)
        owners = np.searchsorted(ends, places_all, side="right")
        for number in np.unique(owners):
            target = targets[int(number)]
            first = int(ends[number]) - target.row_count
            positions_by_path[target.path] = places_all[owners == number] - first
    return positions_by_path


def _places(slot: Slot, rewritten: Sequence[Rewritten]) -> Iterator[npt.NDArray[np.int64]]:
    """The positions, among the slot's live rows, of those that were deleted since, file by file."""
    first = 0
    for each in rewritten:
        if each.file.slot != slot:
            continue
        before = each.before or _EMPTY_BITMAP
        positions = positions_of((each.now or _EMPTY_BITMAP) - before)
        # Deleted rows before a row shift it to the front by their number.
        yield first + positions - np.searchsorted(positions_of(before), positions)
        first += _lived(each)


def _lived(each: Rewritten) -> int:
    return each.file.row_count - len(each.before or _EMPTY_BITMAP)
