"""Deletion vectors: the deleted rows of a data file, as a set of row positions.

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
    """The set of these row positions, in any order. Raises ValueError for a position out of range."""
    if len(positions) and not 0 <= int(positions.min()) <= int(positions.max()) < POSITIONS_MAX:
        raise ValueError(f"a row position is out of range; expected 0 to {POSITIONS_MAX - 1}")
    # Sorted positions build the bitmap container by container, ten times as fast.
    return FrozenBitMap(array.array("I", np.sort(positions).astype(np.uint32).tobytes()))


def positions_of(vector: FrozenBitMap) -> npt.NDArray[np.int64]:
    """The row positions in the set, ascending."""
    return np.frombuffer(vector.to_array(), dtype=np.uint32).astype(np.int64)


def union(existing: FrozenBitMap | None, positions: npt.NDArray[np.integer]) -> FrozenBitMap:
    """The deleted rows of a file with these added. Raises ValueError for a position out of range."""
    additions = positions_set(positions)
    return additions if existing is None else existing | additions


def to_bytes(vector: FrozenBitMap) -> bytes:
    """The portable serialized form, with runs of adjacent rows compressed: equal sets have equal bytes."""
    compact = BitMap(vector)
    compact.run_optimize()
    return compact.serialize()


def from_bytes(data: bytes) -> FrozenBitMap:
    """The inverse of `to_bytes`. Raises ValueError unless the bytes are exactly one serialized bitmap."""
    vector = FrozenBitMap.deserialize(data) if data else None
    if vector is None or len(vector.serialize()) != len(data):
        raise ValueError(f"{len(data)} bytes are not a serialized Roaring bitmap")
    return vector


def live_mask(vector: FrozenBitMap, first_row: int, rows: int) -> npt.NDArray[np.bool_]:
    """Whether each of the rows [first_row, first_row + rows) of the file is live: bool, shape (rows,)."""
    live = np.ones(rows, dtype=np.bool_)
    dead_rows = vector & FrozenBitMap(range(first_row, first_row + rows))
    live[np.frombuffer(dead_rows.to_array(), dtype=np.uint32) - np.uint32(first_row)] = False
    return live
