"""Hashes of rows: equal for rows with equal values, whatever else there is."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.index.key_hash import Hashes, hash_keys
from app.kernel.format.rows.record_key import canonical_bytes
from app.kernel.format.schema.types import stored_type

_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_NULL: Final = np.uint64(1)


def row_hashes(rows: pa.Table) -> Hashes:
    """A hash of the values of each row, in the order of the columns: uint64, shape (rows,)."""
    hashes = np.zeros(rows.num_rows, dtype=np.uint64)
    for column in rows.columns:
        hashes = hashes * _FACTOR + _value_hashes(column)
    return hashes


def _value_hashes(column: pa.ChunkedArray) -> Hashes:
    if column.null_count == len(column):
        return np.full(len(column), _NULL)
    if stored_type(column.type) is None:
        # Values with parts have no canonical bytes.
        texts = [None if each is None else repr(each).encode() for each in column.to_pylist()]
        keys = pa.chunked_array([pa.array(texts, pa.large_binary())])
    else:
        keys = canonical_bytes(column)
    hashes = hash_keys(pc.fill_null(keys, b""))
    return np.where(column.is_null().to_numpy(), _NULL, hashes) if column.null_count else hashes
