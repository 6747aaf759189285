"""Arrow arrays to Python objects that JSON can represent, in the forms that `encode` documents.

It also converts values that no dataset accepts, so that rejected rows can be shown: NaN and infinities become text,
times outside the years 0001–9999 their number of ticks as text, text that is not UTF-8 its base64 in an object, and a
map with repeated keys an array of entries. The decoders accept none of these as a value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries, packed_offsets
from app.kernel.format.schema.types import stored_type


def json_texts(columns: dict[str, pa.Array], rows: int) -> list[bytes]:
    """Each row as the text of a JSON object."""
    values = [to_objects(array) for array in columns.values()]
    encoder = msgspec.json.Encoder()
    if not values:
        return [b"{}"] * rows
    return [encoder.encode(dict(zip(columns, row, strict=True))) for row in zip(*values, strict=True)]


def to_objects(array: pa.Array) -> list[Any]:
    """The values of an array as JSON-ready Python objects."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return to_objects(array.dictionary_decode())
    if pa.types.is_map(kind):
        entries = map_entries(array)
        keys, items = entries.flatten().flatten()
        return _cut(
            entries, list(zip(map(_key_text, to_objects(keys)), to_objects(items), strict=True)), _members
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _cut(array, to_objects(array.flatten()), list)
    if pa.types.is_struct(kind):
        names = [field.name for field in kind]
        members = zip(*(to_objects(child) for child in array.flatten()), strict=True)
        nulls = array.is_null().to_pylist()
        return [
            None if null else dict(zip(names, row, strict=True))
            for null, row in zip(nulls, members, strict=True)
        ]
    return _scalars(array)


def _scalars(array: pa.Array) -> list[Any]:
    flat = stored_type(array.type)
    if flat is not None:
        return flat.json_values(array)
    # Of a type that no dataset has.
    is_clock = pa.types.is_timestamp(array.type) or pa.types.is_time(array.type)
    values: list[Any] = (pc.cast(array, pa.string()) if is_clock else array).to_pylist()
    return values


def _cut(array: pa.Array, elements: list[Any], kind: Callable[[list[Any]], Any]) -> list[Any]:
    """The flat elements of a list or map array, grouped again."""
    ends = packed_offsets(array).to_pylist()
    nulls = array.is_null().to_pylist()
    return [None if null else kind(elements[ends[row] : ends[row + 1]]) for row, null in enumerate(nulls)]


def _members(entries: list[tuple[Any, Any]]) -> Any:
    """The entries of a map as an object."""
    members = dict(entries)
    if len(members) == len(entries):
        return members
    return [{"key": key, "value": value} for key, value in entries]


def _key_text(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, dict):
        return msgspec.json.encode(key).decode("utf-8")
    return str(key)
