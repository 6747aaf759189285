"""Deletion vectors: which rows of a data file are gone, as a set of row positions.

The serialized form is the portable one of the Roaring bitmap specification (32-bit positions, little-endian), which
every implementation of Roaring reads. A data file therefore has at most 2³² rows.
"""

from __future__ import annotations

import array
from typing import Final

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap, FrozenBitMap

POSITIONS_MAX: Final = 2**32


def positions_set(positions: npt.NDArray[np.integer]) -> FrozenBitMap:
    """The set of these row positions, in any order. Raises ValueError for one that no row can have."""
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < POSITIONS_MAX:
        raise ValueError(f"row positions are 0 to {POSITIONS_MAX - 1}")
    # Sorted ones build the bitmap container by container, ten times as fast.
    return FrozenBitMap(array.array("I", np.sort(positions).astype(np.uint32).tobytes()))


def positions_of(deleted: FrozenBitMap) -> npt.NDArray[np.int64]:
    """The row positions in the set, ascending."""
    return np.frombuffer(deleted.to_array(), dtype=np.uint32).astype(np.int64)


def union(existing: FrozenBitMap | None, positions: npt.NDArray[np.integer]) -> FrozenBitMap:
    """The deleted rows of a file after these were deleted too. Raises ValueError for an impossible position."""
    added = positions_set(positions)
    return added if existing is None else existing | added


def to_bytes(deleted: FrozenBitMap) -> bytes:
    """The portable serialized form, runs of neighbouring rows compressed: equal sets have equal bytes."""
    compact = BitMap(deleted)
    compact.run_optimize()
    return compact.serialize()


def from_bytes(data: bytes) -> FrozenBitMap:
    """What `to_bytes` was given. Raises ValueError if these are no serialized bitmap, or more than one."""
    deleted = FrozenBitMap.deserialize(data) if data else None
    if deleted is None or len(deleted.serialize()) != len(data):
        raise ValueError(f"{len(data)} bytes are no serialized Roaring bitmap")
    return deleted


def live_mask(deleted: FrozenBitMap, first_row: int, rows: int) -> npt.NDArray[np.bool_]:
    """Which of the rows [first_row, first_row + rows) of the file are not deleted: bool, shape (rows,)."""
    live = np.ones(rows, dtype=np.bool_)
    gone = deleted & FrozenBitMap(range(first_row, first_row + rows))
    live[np.frombuffer(gone.to_array(), dtype=np.uint32) - np.uint32(first_row)] = False
    return live
