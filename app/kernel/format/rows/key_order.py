"""The order of rows by key.

Most keys differ in their first eight bytes, and numbers sort many times faster than texts. So rows are sorted by these
bytes as a number, and only rows that share it are compared by their whole keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.index.number_order import ascending_order, repeated
from app.kernel.format.partition.members import columns_of

_PREFIX_BYTES: Final = 8
# By the length of a text, the bits of a word that belong to it.
_MASKS: Final = np.array(
    [2**64 - 2 ** (64 - 8 * length) for length in range(_PREFIX_BYTES + 1)], dtype=np.uint64
)


def key_order(rows: pa.Table, key: Sequence[str]) -> npt.NDArray[np.int64]:
    """The numbers of the rows in ascending order of their key fields: int64, shape (rows,).

    The order of Arrow's `sort_by`: texts by their UTF-8 bytes. Rows with equal keys are in any order. The key fields
    contain no nulls.
    """
    columns = columns_of(rows, key).combine_chunks()
    first = columns.column(0)
    # Texts of more than 2 GiB stay in several chunks.
    prefixes = _prefixes(first.chunk(0)) if first.num_chunks == 1 else None
    if prefixes is None:
        return _whole_order(columns)
    order = ascending_order(prefixes)
    ascending = prefixes[order]
    shared = repeated(ascending)
    if not shared.any():
        return order
    tied = order[shared]
    # The prefixes of the rows stay in front: each run of equal ones is sorted within itself.
    parts = columns.take(pa.array(tied)).add_column(0, "", pa.array(ascending[shared]))
    order[shared] = tied[_whole_order(parts.rename_columns([f"{at}" for at in range(parts.num_columns)]))]
    return order


def _whole_order(columns: pa.Table) -> npt.NDArray[np.int64]:
    by = [(name, "ascending") for name in columns.column_names]
    order: npt.NDArray[np.int64] = pc.sort_indices(columns, sort_keys=by).to_numpy().astype(np.int64)
    return order


def _prefixes(values: pa.Array) -> npt.NDArray[np.uint64] | npt.NDArray[np.int64] | None:
    """Numbers in the order of the values; those of different values may be equal. None for types without."""
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _first_bytes(values)
    if pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        ticks = values.view(pa.int32()) if pa.types.is_date32(kind) else values
        ticks = ticks.view(pa.int64()) if pa.types.is_timestamp(kind) else ticks
        numbers: npt.NDArray[np.int64] = ticks.to_numpy().astype(np.int64)
        return numbers
    return None


def _first_bytes(values: pa.Array) -> npt.NDArray[np.uint64]:
    """The first eight bytes of texts as big-endian numbers; shorter texts end with zeros."""
    _, ends, data = values.buffers()
    offsets = np.frombuffer(ends, dtype=np.int32)[values.offset : values.offset + len(values) + 1]
    content = np.frombuffer(data or b"", dtype=np.uint8)[: offsets[-1]]
    # Every position has a word behind it, whatever its alignment.
    padded = np.append(content, np.zeros(_PREFIX_BYTES, dtype=np.uint8))
    words = np.ndarray((len(content) + 1,), dtype=">u8", buffer=padded, strides=(1,))
    lengths = np.minimum(np.diff(offsets), _PREFIX_BYTES)
    prefixes: npt.NDArray[np.uint64] = words[offsets[:-1]].astype(np.uint64) & _MASKS[lengths]
    return prefixes
