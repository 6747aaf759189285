"""Exact casts between Arrow types, at any depth: a value becomes the same value, or is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

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

Refusals = list[tuple[int, str]]
"""Rows whose values are refused, with the reasons."""


def is_lossless(source: pa.DataType, target: DataType) -> bool:
    """Whether every value of the Arrow type is a value of the target type."""
    return _matches(source, target, lambda flat, kind: flat.accepts(kind))


def is_exact(source: pa.DataType, target: DataType) -> bool:
    """Whether values of the Arrow type become values of the target type, as far as each is exactly one of them."""
    return _matches(source, target, lambda flat, kind: flat.converts(kind))


def _matches(source: pa.DataType, target: DataType, accepts: Callable[[FlatType, pa.DataType], bool]) -> bool:
    if pa.types.is_null(source):
        return True
    if pa.types.is_dictionary(source):
        value = source.value_type
        return not (pa.types.is_nested(value) or pa.types.is_dictionary(value)) and _matches(
            value, target, accepts
        )
    match target:
        case List(element):
            return _is_list(source) and _matches(source.value_type, element, accepts)
        case Map(key, value):
            return (
                pa.types.is_map(source)
                and _matches(source.key_type, key, accepts)
                and _matches(source.item_type, value, accepts)
            )
        case Struct(members):
            return pa.types.is_struct(source) and _struct_matches(source, dict(members), accepts)
        case FlatType():
            return accepts(target, source)


def ignored_members(source: pa.DataType, target: DataType, place: str) -> Iterator[str]:
    """The names of members that the target type does not have and that are always null, which casts leave out.

    The pair must satisfy `is_exact`. `place`: the names of the structs around them, each followed by a dot.
    """
    match target:
        case Struct(members) if pa.types.is_struct(source):
            types = dict(members)
            for field in source:
                if field.name in types:
                    yield from ignored_members(field.type, types[field.name], f"{place}{field.name}.")
                else:
                    yield f"{place}{field.name}"
        case List(element) if _is_list(source):
            yield from ignored_members(source.value_type, element, place)
        case Map(_, value) if pa.types.is_map(source):
            yield from ignored_members(source.item_type, value, place)


def cast_lossless(array: pa.Array, target: DataType) -> pa.Array:
    """A valid array cast to the target type, as by `cast_exact`. Raises ArrowInvalid, also for refused values."""
    values, refusals = cast_exact(array, target)
    if refusals:
        raise pa.ArrowInvalid(refusals[0][1])
    return values


def cast_exact(array: pa.Array, target: DataType) -> tuple[pa.Array, Refusals]:
    """A valid array cast to the target type, and the refusals of its values that are not exactly of the type.

    Refused values are null. The pair must satisfy `is_exact`; values of other flat types become strings as their texts.
    Raises ArrowInvalid.
    """
    arrow_type = to_arrow(target)
    if array.type == arrow_type and not pa.types.is_nested(arrow_type):
        return array, []
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type), []
    if pa.types.is_dictionary(array.type):
        return cast_exact(array.dictionary_decode(), target)
    match target:
        case List(element):
            values, refusals = cast_exact(array.flatten(), element)
            offsets = packed_offsets(array)
            lists = pa.ListArray.from_arrays(offsets, values, type=arrow_type, mask=array.is_null())
            return lists, _of_owners(offsets, refusals)
        case Struct(members):
            return _cast_struct(array, members, arrow_type)
        case Map(key, value):
            return _cast_map(array, key, value, arrow_type)
        case FlatType():
            return _cast_flat(array, target)


def _cast_struct(
    array: pa.StructArray, members: Sequence[tuple[str, DataType]], arrow_type: pa.DataType
) -> tuple[pa.Array, Refusals]:
    children = dict(zip((field.name for field in array.type), array.flatten(), strict=True))
    columns = []
    refusals: Refusals = []
    for name, member in members:
        if name in children:
            column, bad = cast_exact(children[name], member)
            refusals += bad
        else:
            column = pa.nulls(len(array), to_arrow(member))
        columns.append(column)
    return pa.StructArray.from_arrays(columns, type=arrow_type, mask=array.is_null()), refusals


def _cast_map(
    array: pa.MapArray, key: DataType, value: DataType, arrow_type: pa.DataType
) -> tuple[pa.Array, Refusals]:
    entries = map_entries(array)
    keys, items = entries.flatten().flatten()
    offsets = packed_offsets(entries)
    cast_keys, bad_keys = cast_exact(keys, key)
    cast_items, bad_items = cast_exact(items, value)
    if bad_keys:
        # Keys are never null. Their rows are left out.
        cast_keys = pc.fill_null(cast_keys, _any_value(cast_keys.type))
    reasons = [(place, f"as a key of the map: {reason}") for place, reason in bad_keys]
    maps = pa.MapArray.from_arrays(offsets, cast_keys, cast_items, type=arrow_type, mask=array.is_null())
    return maps, _of_owners(offsets, [*reasons, *bad_items])


def _any_value(kind: pa.DataType) -> pa.Scalar:
    return pa.scalar("", kind) if pa.types.is_string(kind) else pa.scalar(0, kind)


def _of_owners(offsets: pa.Int32Array, refusals: Refusals) -> Refusals:
    """The refusals of elements as those of their lists."""
    if not refusals:
        return []
    ends = offsets.to_numpy()[1:]
    owners = np.searchsorted(ends, [place for place, _ in refusals], side="right").tolist()
    return [(owner, reason) for owner, (_, reason) in zip(owners, refusals, strict=True)]


def _cast_flat(array: pa.Array, target: FlatType) -> tuple[pa.Array, Refusals]:
    source = stored_type(array.type)
    if target == STRING and source is not None and source != STRING:
        return pc.cast(source.texts(array), pa.string()), []
    if target.accepts(array.type):
        try:
            return target.from_arrow(array), []
        except pa.ArrowInvalid:
            # A time may be out of range in a finer unit.
            pass
    values, refusals = target.converted(array)
    return values, [
        (place, f"expected {target}, got {error.got}, {error}") for place, error in refusals.items()
    ]


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


def _struct_matches(
    source: pa.StructType,
    members: dict[str, DataType],
    accepts: Callable[[FlatType, pa.DataType], bool],
) -> bool:
    names = [field.name for field in source]
    if len(set(names)) != len(names):
        return False
    return all(
        _matches(field.type, members[field.name], accepts)
        if field.name in members
        else pa.types.is_null(field.type)
        for field in source
    )


def packed_offsets(array: pa.Array) -> pa.Int32Array:
    """Offsets into the flattened list, which has no gaps and no elements behind null lists."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.zeros(len(array) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return pc.cast(pa.array(offsets), pa.int32())
