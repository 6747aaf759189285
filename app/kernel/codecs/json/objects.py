"""Arrow arrays to Python objects that JSON can represent, in the forms that `encode` documents.

It also converts values that no dataset accepts, so that rejected rows can be shown: NaN and infinities become text,
times outside the years 0001–9999 their number of ticks as text, text that is not UTF-8 its base64 in an object, and a
map with repeated keys an array of entries. The decoders accept none of these as a value.
"""

from __future__ import annotations

import math
from binascii import b2a_base64
from collections.abc import Callable
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries, packed_offsets
from app.kernel.format.schema.texts import DATE_DAYS_MAX, DATE_DAYS_MIN, timestamp_bounds

_NON_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


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
    if pa.types.is_map(kind):
        entries = map_entries(array)
        keys, items = entries.flatten().flatten()
        return _cut(
            entries, list(zip(map(_key_text, to_objects(keys)), to_objects(items), strict=True)), _members
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
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
    kind = array.type
    if pa.types.is_timestamp(kind):
        low, high = timestamp_bounds(kind.unit)
        return _within(array, pa.int64(), low, high, kind.unit, timestamp_texts)
    if pa.types.is_date32(kind):
        return _within(array, pa.int32(), DATE_DAYS_MIN, DATE_DAYS_MAX, "days", _date_texts)
    if pa.types.is_string(kind):
        return _texts(array)
    values: list[Any] = array.to_pylist()
    if pa.types.is_decimal(kind):
        return [None if value is None else f"{value:f}" for value in values]
    if pa.types.is_binary(kind):
        return [None if value is None else _base64(value) for value in values]
    if pa.types.is_float32(kind):
        # The shortest decimal of the 32 bits, not of the 64 bits that they widen to.
        values = [None if value is None else float(str(np.float32(value))) for value in values]
    if pa.types.is_floating(kind):
        return [
            value if value is None or math.isfinite(value) else _NON_FINITE[str(value)] for value in values
        ]
    return values


def timestamp_texts(array: pa.TimestampArray) -> pa.StringArray:
    """RFC 3339 texts, without the Z where the type has no zone."""
    kind = array.type
    # Arrow looks up the zone for every value; in UTC the wall clock is the same.
    local = array.view(pa.int64()).view(pa.timestamp(kind.unit))
    seconds = pc.cast(local, pa.timestamp("s"), safe=False)
    whole = pc.equal(pc.cast(seconds, local.type), local)
    if pc.all(whole, min_count=0).as_py():
        texts = pc.cast(seconds, pa.string())
    elif not pc.any(whole, min_count=0).as_py():
        texts = pc.cast(local, pa.string())
    else:
        texts = pc.if_else(whole, pc.cast(seconds, pa.string()), pc.cast(local, pa.string()))
    texts = pc.binary_replace_slice(texts, 10, 11, "T")
    return texts if kind.tz is None else pc.binary_join_element_wise(texts, "Z", "")


def _date_texts(array: pa.Date32Array) -> pa.StringArray:
    return pc.cast(array, pa.string())


def _within(
    array: pa.Array,
    ticks_type: pa.DataType,
    low: int,
    high: int,
    unit: str,
    texts: Callable[[pa.Array], pa.StringArray],
) -> list[str | None]:
    """The texts of ticks within the bounds, and the numbers of the others."""
    ticks = array.view(ticks_type)
    outside = pc.or_(pc.less(ticks, low), pc.greater(ticks, high))
    if not pc.any(outside, min_count=0).as_py():
        found: list[str | None] = texts(array).to_pylist()
        return found
    plain = texts(pc.if_else(outside, pa.scalar(None, array.type), array)).to_pylist()
    return [
        f"{tick} {unit} since 1970-01-01" if far else text
        for text, far, tick in zip(plain, outside.to_pylist(), ticks.to_pylist(), strict=True)
    ]


def _texts(array: pa.StringArray) -> list[Any]:
    try:
        values: list[Any] = array.to_pylist()
        return values
    except UnicodeDecodeError:
        return [_text(value) for value in array.view(pa.binary()).to_pylist()]


def _text(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": _base64(value)}


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode("ascii")


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
