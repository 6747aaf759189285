"""Lossless casts between Arrow types, at any depth."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.types import (
    STRING,
    DataType,
    FlatType,
    List,
    Map,
    Struct,
    stored_type,
    to_arrow,
)


def is_lossless(source: pa.DataType, target: DataType) -> bool:
    """Whether every value of the Arrow type is a value of the target type."""
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        value = source.value_type
        return not (pa.types.is_nested(value) or pa.types.is_dictionary(value)) and is_lossless(value, target)
    match target:
        case List(element):
            return _is_list(source) and is_lossless(source.value_type, element)
        case Map(key, value):
            return (
                pa.types.is_map(source)
                and is_lossless(source.key_type, key)
                and is_lossless(source.item_type, value)
            )
        case Struct(members):
            return pa.types.is_struct(source) and _struct_is_lossless(source, dict(members))
        case FlatType():
            return target.accepts(source)


def cast_lossless(array: pa.Array, target: DataType) -> pa.Array:
    """A valid array cast to the target type. The pair must satisfy `is_lossless`; values of other
    flat types become strings as their texts. Raises ArrowInvalid.
    """
    arrow_type = to_arrow(target)
    if array.type == arrow_type and not pa.types.is_nested(arrow_type):
        return array
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type)
    if pa.types.is_dictionary(array.type):
        return cast_lossless(array.dictionary_decode(), target)
    match target:
        case List(element):
            values = cast_lossless(array.flatten(), element)
            return pa.ListArray.from_arrays(
                packed_offsets(array), values, type=arrow_type, mask=array.is_null()
            )
        case Struct(members):
            children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
            columns = [
                cast_lossless(children[name], member)
                if name in children
                else pa.nulls(len(array), to_arrow(member))
                for name, member in members
            ]
            return pa.StructArray.from_arrays(columns, type=arrow_type, mask=array.is_null())
        case Map(key, value):
            entries = map_entries(array)
            keys, items = entries.flatten().flatten()
            return pa.MapArray.from_arrays(
                packed_offsets(entries),
                cast_lossless(keys, key),
                cast_lossless(items, value),
                type=arrow_type,
                mask=array.is_null(),
            )
        case FlatType():
            source = stored_type(array.type)
            if target == STRING and source is not None and source != STRING:
                return pc.cast(source.texts(array), pa.string())
            return target.from_arrow(array)


def map_entries(array: pa.MapArray) -> pa.ListArray:
    """The map as a list of key-value structs, without entries behind null maps."""
    entries = pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])
    # Arrow accepts no mask with sliced offsets, so the offsets are copied.
    offsets = pa.array(array.offsets.to_numpy().copy())
    return pa.ListArray.from_arrays(offsets, entries, mask=array.is_null())


def _is_list(source: pa.DataType) -> bool:
    return bool(
        pa.types.is_list(source) or pa.types.is_large_list(source) or pa.types.is_fixed_size_list(source)
    )


def _struct_is_lossless(source: pa.StructType, members: dict[str, DataType]) -> bool:
    names = [field.name for field in source]
    if len(set(names)) != len(names) or not set(names) <= set(members):
        return False
    return all(is_lossless(field.type, members[field.name]) for field in source)


def packed_offsets(array: pa.Array) -> pa.Int32Array:
    """Offsets into the flattened list, which has no gaps and no elements behind null lists."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pc.cast(pa.array(offsets), pa.int32())
