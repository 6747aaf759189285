"""Values of any type as numbers: equal numbers stand for equal values, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries

_CODE_BYTES: Final = 8
# The number of columns that are combined at a time, so that wide rows need little memory.
_TOGETHER: Final = 16


def value_codes(values: pa.Array) -> np.ndarray:
    """A number per value (int64): 0 for null, above 0 the same for equal values.

    Maps are equal if they have the same entries, in any order. A key that is there twice counts as two entries.
    """
    kind = values.type
    if pa.types.is_map(kind):
        return _list_codes(map_entries(values), are_maps=True)
    if pa.types.is_struct(kind):
        present = values.is_valid().to_numpy(zero_copy_only=False)
        codes = _tuple_codes([value_codes(member) for member in values.flatten()], len(values))
        return np.where(present, codes, 0)
    if pa.types.is_list(kind):
        return _list_codes(values)
    return _dictionary_codes(values)


def row_codes(rows: pa.Table) -> np.ndarray:
    """A number per row (int64, above 0), the same for rows that are equal in every column."""
    return _tuple_codes([value_codes(_whole(column)) for column in rows.columns], rows.num_rows)


def equal_rows(one: pa.Table, other: pa.Table) -> np.ndarray:
    """Whether the rows of two tables of one schema are equal (bool), null equal to null."""
    equal = np.ones(one.num_rows, dtype=bool)
    for name in one.column_names:
        if not equal.any():
            break
        equal &= _equal_values(one.column(name), other.column(name))
    return equal


def concat_lists(one: pa.ChunkedArray, other: pa.ChunkedArray) -> pa.Array:
    """The concatenation of two columns of lists, row by row; null where either is null."""
    pair = (_whole(one), _whole(other))
    absent = pc.or_(pair[0].is_null(), pair[1].is_null())
    lengths = [pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64) for lists in pair]
    owners = np.concatenate([np.repeat(np.arange(len(one)), each) for each in lengths])
    # The sort is stable: among the elements of one result, those of `one` stay in front.
    elements = pa.concat_arrays([lists.flatten() for lists in pair]).take(
        pa.array(np.argsort(owners, kind="stable"))
    )
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths[0] + lengths[1])]), pa.int32())
    return pa.ListArray.from_arrays(offsets, elements, type=one.type, mask=absent)


def _equal_values(one: pa.ChunkedArray, other: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_nested(one.type):
        # Arrow has no kernel that compares nested values.
        codes = value_codes(_whole(pa.chunked_array([*one.chunks, *other.chunks], one.type)))
        same_codes: np.ndarray = codes[: len(one)] == codes[len(one) :]
        return same_codes
    same = pc.fill_null(pc.equal(_bits(one), _bits(other)), False)
    if one.null_count and other.null_count:
        same = pc.or_(same, pc.and_(one.is_null(), other.is_null()))
    flags: np.ndarray = same.to_numpy()
    return flags


def _bits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as their bits, because 0.0 and -0.0 are different values; other values unchanged."""
    if not pa.types.is_floating(values.type):
        return values
    kind = pa.int32() if values.type == pa.float32() else pa.int64()
    return pa.chunked_array([chunk.view(kind) for chunk in values.chunks], kind)


def _list_codes(lists: pa.ListArray, *, are_maps: bool = False) -> np.ndarray:
    """The codes of lists. `are_maps`: those of maps, whose entries are compared in any order."""
    elements = np.ascontiguousarray(value_codes(lists.flatten()))
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy().astype(np.int64)
    if are_maps:
        elements = _sorted_within(elements, lengths)
    # The codes of a list's elements, concatenated, are bytes; equal lists have equal bytes.
    ends = np.concatenate([[0], np.cumsum(lengths)]) * _CODE_BYTES
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(elements)]
    list_bytes = pa.Array.from_buffers(pa.large_binary(), len(lists), buffers)
    present = lists.is_valid().to_numpy(zero_copy_only=False)
    return np.where(present, _dictionary_codes(list_bytes), 0)


def _sorted_within(codes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The codes of consecutive groups of these lengths, ascending within each group."""
    if lengths.max(initial=0) < 2:
        return codes
    # One sort of single numbers: those of each group are greater than all codes of the groups before it. Neither the
    # number of groups nor of codes exceeds 2**31, so their product does not overflow.
    bases = np.repeat(np.arange(len(lengths)) * (codes.max() + 1), lengths)
    return np.asarray(np.sort(bases + codes) - bases)


def _tuple_codes(parts: Sequence[np.ndarray], rows: int) -> np.ndarray:
    codes = np.ones(rows, dtype=np.int64)
    for start in range(0, len(parts), _TOGETHER):
        tuples = np.stack([codes, *parts[start : start + _TOGETHER]], axis=1)
        kind = pa.binary(tuples.shape[1] * _CODE_BYTES)
        codes = _dictionary_codes(pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(tuples)]))
    return codes


def _dictionary_codes(values: pa.Array) -> np.ndarray:
    indices = values.dictionary_encode().indices
    codes: np.ndarray = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False).astype(np.int64) + 1
    return codes


def _whole(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
