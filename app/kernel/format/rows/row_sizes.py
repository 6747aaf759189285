"""The sizes of rows in memory."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Sizes = npt.NDArray[np.int64]
# An offset of a text or a list, and the punctuation of a member in JSON.
_OFFSET_BYTES: Final = 4
_PUNCTUATION_BYTES: Final = 4


def row_bytes(rows: pa.Table, *, with_names: bool = False) -> _Sizes:
    """The bytes of each row: int64, shape (rows,). They add up to about the size of the table.

    `with_names`: with the names of all members, which JSON repeats for each value.
    """
    sizes = np.zeros(rows.num_rows, dtype=np.int64)
    for field, column in zip(rows.schema, rows.columns, strict=True):
        start = 0
        for chunk in column.chunks:
            sizes[start : start + len(chunk)] += _sizes(chunk, with_names=with_names) + _name_bytes(
                field, with_names=with_names
            )
            start += len(chunk)
    return sizes


def rows_within(rows: pa.Table, bytes_max: int, *, with_names: bool = False) -> int:
    """The number of the first rows that have at most `bytes_max` bytes together, but at least one if there is any."""
    if rows.num_rows <= 1 or _fit(rows, bytes_max, with_names=with_names):
        return int(rows.num_rows)
    ends = np.cumsum(row_bytes(rows, with_names=with_names))
    fits = int(np.searchsorted(ends, bytes_max, side="right"))
    return max(1, fits)


def _fit(rows: pa.Table, bytes_max: int, *, with_names: bool) -> bool:
    """Whether the rows certainly have at most `bytes_max` bytes, which is known without reading any of them."""
    overhead = sum(_overhead_bytes(field, with_names=with_names) for field in rows.schema)
    return bool(rows.nbytes + rows.num_rows * overhead <= bytes_max)


def _overhead_bytes(field: pa.Field, *, with_names: bool) -> float:
    """The most bytes that a value counts beyond those in its buffers; infinite if that depends on the values."""
    kind = field.type
    if pa.types.is_dictionary(kind) or (pa.types.is_nested(kind) and not pa.types.is_struct(kind)):
        return math.inf
    members = (kind.field(number) for number in range(kind.num_fields))
    return (
        1
        + _name_bytes(field, with_names=with_names)
        + sum(_overhead_bytes(each, with_names=with_names) for each in members)
    )


def _name_bytes(field: pa.Field, *, with_names: bool) -> int:
    return len(field.name) + _PUNCTUATION_BYTES if with_names else 0


def _sizes(array: pa.Array, *, with_names: bool) -> _Sizes | int:
    """The size of each value; one number if all have the same."""
    kind = array.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_sizes(array)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _text_sizes(array)
    if pa.types.is_struct(kind):
        total: _Sizes | int = 1
        for number, field in enumerate(kind):
            total = (
                total
                + _sizes(array.field(number), with_names=with_names)
                + _name_bytes(field, with_names=with_names)
            )
        return total
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays([array.keys, array.items], ["key", "value"])
        return _list_sizes(array.offsets, entries, with_names=with_names)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_sizes(array.offsets, array.values, with_names=with_names)
    if pa.types.is_dictionary(kind):
        values = _sizes(array.dictionary, with_names=with_names)
        if isinstance(values, int):
            return values
        if not len(values):
            # All rows are null.
            return np.zeros(len(array), dtype=np.int64)
        sizes: _Sizes = values[array.indices.fill_null(0).to_numpy()]
        return sizes
    return 1 if pa.types.is_null(kind) else max(1, int(kind.bit_width) // 8)


def _text_sizes(array: pa.Array) -> _Sizes:
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy().astype(np.int64)
    sizes: _Sizes = lengths + _OFFSET_BYTES
    return sizes


def _list_sizes(offsets: pa.Array, values: pa.Array, *, with_names: bool) -> _Sizes:
    ends = offsets.to_numpy().astype(np.int64)
    if not len(ends):
        return np.zeros(0, dtype=np.int64)
    first = int(ends[0])
    each = _sizes(values.slice(first, int(ends[-1]) - first), with_names=with_names)
    if isinstance(each, int):
        sizes: _Sizes = np.diff(ends) * each
    else:
        before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(each)])
        sizes = np.diff(before[ends - first])
    return sizes + _OFFSET_BYTES
