"""Checks beyond Arrow's own validation: the expanded size of arrays, and rows that JSON cannot represent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries
from app.kernel.format.schema.types import DataType, FlatType, List, Map, Struct

_VARIABLE: Final = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_binary,
    pa.types.is_large_binary,
)
_FIXED_BYTES_MAX: Final = 32
_NUMBERS: Final = {
    pa.time32("s"): pa.int32(),
    pa.time32("ms"): pa.int32(),
    pa.time64("us"): pa.int64(),
    pa.time64("ns"): pa.int64(),
    pa.date64(): pa.int64(),
}
_OCTETS: Final[dict[pa.DataType, pa.DataType]] = {
    pa.string(): pa.binary(),
    pa.large_string(): pa.large_binary(),
    pa.string_view(): pa.binary_view(),
}
_Rows = npt.NDArray[Any]


def expanded_bytes(array: pa.Array) -> int:
    """The approximate size in bytes of the values of a valid array without dictionaries, views and null runs."""
    kind = array.type
    if pa.types.is_null(kind):
        # Whatever type the nulls get, they need some bytes each.
        return 8 * len(array)
    if pa.types.is_dictionary(kind):
        indices = array.indices.drop_null().to_numpy()
        return 4 * len(array) + int(_value_bytes(array.dictionary)[indices].sum())
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return 4 * len(array) + int(_value_bytes(array).sum())
    if pa.types.is_map(kind):
        return 4 * len(array) + expanded_bytes(map_entries(array).flatten())
    if pa.types.is_struct(kind):
        return sum(expanded_bytes(child) for child in array.flatten())
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return 4 * len(array) + expanded_bytes(array.flatten())
    return int(array.nbytes)


def viewed_bytes(array: pa.Array) -> int:
    """The total size in bytes of the values of all views in an array, at any depth. Its buffers must be validated.

    Many views may share the same bytes, so the validation of their values could take unlimited time.
    """
    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return int(_view_lengths(array).sum(dtype=np.int64))
    if pa.types.is_dictionary(kind):
        return viewed_bytes(array.dictionary)
    if pa.types.is_struct(kind):
        return sum(viewed_bytes(array.field(number)) for number in range(kind.num_fields))
    if pa.types.is_map(kind):
        return viewed_bytes(array.keys) + viewed_bytes(array.items)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return viewed_bytes(array.values)
    return 0


def _view_lengths(array: pa.Array) -> npt.NDArray[np.int32]:
    """The lengths of the values, which are the first four of the 16 bytes of each view; undefined for nulls."""
    views = array.buffers()[1]
    if views is None:
        return np.zeros(0, dtype=np.int32)
    return np.frombuffer(views, dtype=np.int32)[::4][array.offset : array.offset + len(array)]


def _value_bytes(array: pa.Array) -> npt.NDArray[np.int64]:
    """The size in bytes of each value of a flat array; undefined for nulls."""
    kind = array.type
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        return np.where(_valid(array), _view_lengths(array), 0).astype(np.int64)
    if any(test(kind) for test in _VARIABLE):
        sizes = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        return np.asarray(sizes, dtype=np.int64)
    return np.full(len(array), _FIXED_BYTES_MAX, dtype=np.int64)


def invalid_rows(array: pa.Array, data_type: DataType) -> Iterator[tuple[_Rows, str]]:
    """The elements of a valid array of the type with rejected values, as (indices, reason)."""
    match data_type:
        case FlatType():
            yield from _out_of_range(array, data_type)
        case Struct(members):
            for (_, member), child in zip(members, array.flatten(), strict=True):
                yield from invalid_rows(child, member)
        case List(element):
            yield from _of_elements(array, invalid_rows(array.flatten(), element))
        case Map(key, value):
            entries = map_entries(array)
            keys, items = entries.flatten().flatten()
            yield _repeated_keys(entries, keys), "got a map in which a key appears more than once"
            yield from _of_elements(entries, invalid_rows(keys, key))
            yield from _of_elements(entries, invalid_rows(items, value))


def _out_of_range(array: pa.Array, data_type: FlatType) -> Iterator[tuple[_Rows, str]]:
    by_reason: dict[str, list[int]] = {}
    for row, reason in data_type.range_faults(array).items():
        by_reason.setdefault(reason, []).append(row)
    for reason, places in by_reason.items():
        yield np.array(places, dtype=np.int64), reason


def without_text(array: pa.Array) -> pa.Array:
    """The same array with bytes instead of text, and numbers instead of days and times of day, so that its validation
    checks neither UTF-8 nor their range.

    Those in dictionaries and in lists of fixed size are unchanged.
    """
    kind = _octets_type(array.type)
    return array if kind == array.type else array.view(kind)


def has_clocks(kind: pa.DataType) -> bool:
    """Whether `without_text` has numbers instead of values of the type."""
    if kind in _NUMBERS:
        return True
    return any(has_clocks(kind.field(number).type) for number in range(kind.num_fields))


def _octets_type(kind: pa.DataType) -> pa.DataType:
    match kind:
        case pa.StructType():
            return pa.struct([field.with_type(_octets_type(field.type)) for field in kind])
        case pa.MapType():
            return pa.map_(
                _octets_type(kind.key_type), kind.item_field.with_type(_octets_type(kind.item_type))
            )
        case pa.ListType():
            return pa.list_(kind.value_field.with_type(_octets_type(kind.value_type)))
        case pa.LargeListType():
            return pa.large_list(kind.value_field.with_type(_octets_type(kind.value_type)))
    return _NUMBERS.get(kind, _OCTETS.get(kind, kind))


def invalid_text_rows(array: pa.Array) -> _Rows:
    """The elements of an array with text that is not UTF-8. The array must be valid after `without_text`."""
    kind = array.type
    if kind in _OCTETS:
        values = array.view(_OCTETS[kind]).to_pylist()
        return np.array([row for row, value in enumerate(values) if not _is_text(value)], dtype=np.int64)
    rows = np.empty(0, dtype=np.int64)
    if pa.types.is_struct(kind):
        # Children of null structs count as well, because their text must also be UTF-8.
        rows = np.concatenate([rows, *(invalid_text_rows(array.field(n)) for n in range(kind.num_fields))])
    elif pa.types.is_map(kind):
        return invalid_text_rows(map_entries(array))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        owners = pc.list_parent_indices(array).to_numpy()
        rows = owners[invalid_text_rows(array.flatten())]
    return np.unique(rows)


def _is_text(value: bytes | None) -> bool:
    try:
        (value or b"").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _valid(array: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _where(condition: pa.BooleanArray) -> _Rows:
    return np.flatnonzero(pc.fill_null(condition, False).to_numpy(zero_copy_only=False))


def _of_elements(lists: pa.ListArray, faults: Iterator[tuple[_Rows, str]]) -> Iterator[tuple[_Rows, str]]:
    """The results for elements, converted to indices of their lists."""
    owners = pc.list_parent_indices(lists).to_numpy()
    for elements, reason in faults:
        yield np.unique(owners[elements]), reason


def _repeated_keys(entries: pa.ListArray, keys: pa.Array) -> _Rows:
    owners = pc.list_parent_indices(entries)
    counts = (
        pa.table({"owner": owners, "key": keys}).group_by(["owner", "key"]).aggregate([([], "count_all")])
    )
    repeats = counts.filter(pc.greater(counts["count_all"], 1))
    return np.unique(repeats["owner"].to_numpy())
