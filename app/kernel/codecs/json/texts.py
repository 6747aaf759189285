"""Arrow arrays as JSON text, column by column: one text for each value.

The text of a row is a sequence of parts. A part is either the same for all rows, such as the name of a member, or an
array with one text for each row. Parts are joined once for a whole row, so no value is copied for each level of
nesting, unless it may be null.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import map_entries, packed_offsets
from app.kernel.format.schema.types import STRING, stored_type

Part: TypeAlias = bytes | pa.LargeBinaryArray
"""What all rows have in common, or the text of each row; never null."""

_TEXT: Final = pa.large_binary()
_AS_NUMPY: Final = orjson.OPT_SERIALIZE_NUMPY
_COMMA: Final = ord(",")
_NULL: Final = pa.scalar(b"null", _TEXT)
_SHORT_ESCAPES: Final = {
    '"': r"\"",
    "\\": r"\\",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
}
_ESCAPES: Final = {
    ord(character): _SHORT_ESCAPES.get(character, f"\\u{ord(character):04x}").encode()
    # The backslash first: the others add backslashes.
    for character in ("\\", '"', *map(chr, range(0x20)))
}


def joined(parts: Sequence[Part], rows: int) -> pa.LargeBinaryArray:
    """The parts of each of the rows as one text."""
    pieces = _condensed(parts)
    if not any(isinstance(part, pa.Array) for part in pieces):
        return pa.repeat(pa.scalar(b"".join(pieces), _TEXT), rows)
    if len(pieces) == 1:
        return pieces[0]
    scalars = (pa.scalar(part, _TEXT) if isinstance(part, bytes) else part for part in pieces)
    return pc.binary_join_element_wise(*scalars, pa.scalar(b"", _TEXT))


def object_parts(names: Iterable[str], columns: Sequence[pa.Array], *, end: bytes = b"") -> list[Part]:
    """Objects with a member for each column, and `end` behind each object."""
    parts: list[Part] = [b"{"]
    for number, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts.append(orjson.dumps(name) + b":")
        parts += value_parts(column, end=b"," if number < len(columns) - 1 else b"")
    return [*parts, b"}" + end]


def content(texts: pa.LargeBinaryArray) -> memoryview:
    """The texts one after another; `texts` is not a slice."""
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)
    return memoryview(texts.buffers()[2])[: offsets[len(texts)]]


def value_parts(array: pa.Array, *, end: bytes = b"") -> list[Part]:
    """The values, and `end` behind each of them; `null` where there is none."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return _dictionary_parts(array, end)
    if array.null_count == len(array):
        return [b"null" + end]
    if array.null_count:
        return [pc.if_else(array.is_valid(), joined(_valid_parts(array, b""), len(array)), _NULL), end]
    return _valid_parts(array, end)


def _dictionary_parts(array: pa.DictionaryArray, end: bytes) -> list[Part]:
    values = array.dictionary
    texts = joined(value_parts(values, end=end), len(values))
    if len(values) == 1 and not array.null_count:
        return [texts[0].as_py()]
    return [pc.fill_null(pc.take(texts, array.indices), pa.scalar(b"null" + end, _TEXT))]


def _valid_parts(array: pa.Array, end: bytes) -> list[Part]:
    """The values, and any text where there is none."""
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _number_parts(array, end)
    if pa.types.is_boolean(kind):
        return [pc.if_else(array, pa.scalar(b"true" + end, _TEXT), pa.scalar(b"false" + end, _TEXT))]
    if pa.types.is_struct(kind):
        return object_parts([field.name for field in kind], array.flatten(), end=end)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        elements = array.flatten()
        return [b"[", _in_lists(array, joined(value_parts(elements), len(elements))), b"]" + end]
    if pa.types.is_map(kind):
        return _map_parts(map_entries(array), end)
    return [b'"', _string_contents(array), b'"' + end]


def _number_parts(array: pa.Array, end: bytes) -> list[Part]:
    """All numbers are written as one JSON array, which is then cut at its commas."""
    values = array.fill_null(0).to_numpy(zero_copy_only=False)
    # As bits: 0.0 and -0.0 are equal numbers with two texts.
    bits = values.view(f"u{values.itemsize}")
    if (bits == bits[0]).all():
        return [orjson.dumps(values[:1], option=_AS_NUMPY)[1:-1] + end]
    text = orjson.dumps(values, option=_AS_NUMPY)[1:-1] + b","
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    offsets[1:] = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _COMMA)
    if end == b",":
        offsets[1:] += 1
        return [_cut(text, offsets)]
    offsets[1:] -= np.arange(len(values))
    return [_cut(text.replace(b",", b""), offsets), end]


def _cut(text: bytes, offsets: np.ndarray) -> pa.LargeBinaryArray:
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(text)]
    return pa.Array.from_buffers(_TEXT, len(offsets) - 1, buffers)


def _in_lists(array: pa.Array, elements: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The texts of the elements of each list, with commas between them; empty for null lists."""
    lists = pa.ListArray.from_arrays(packed_offsets(array), elements)
    return pc.binary_join(lists, pa.scalar(b",", _TEXT))


def _map_parts(entries: pa.ListArray, end: bytes) -> list[Part]:
    """Objects whose members are named by the texts of the keys."""
    keys, items = entries.flatten().flatten()
    names = value_parts(keys)
    if not _is_string(keys.type):
        names = [b'"', _escaped(joined(names, len(keys))), b'"']
    members = joined([*names, b":", *value_parts(items)], len(items))
    return [b"{", _in_lists(entries, members), b"}" + end]


def _is_string(kind: pa.DataType) -> bool:
    """Whether JSON has a string for values of this type."""
    return not (
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_nested(kind)
    )


def _string_contents(array: pa.Array) -> pa.LargeBinaryArray:
    """What is between the quotation marks."""
    flat = stored_type(array.type)
    texts = pc.cast(pc.cast(array if flat is None else flat.texts(array), pa.large_string()), _TEXT)
    return _escaped(texts) if flat == STRING else texts


def _escaped(texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The texts with escapes for the characters that JSON does not have within strings."""
    data = texts.buffers()[2]
    if not len(texts) or data is None:
        return texts
    offsets = np.frombuffer(texts.buffers()[1], dtype=np.int64)
    octets = np.frombuffer(data, dtype=np.uint8)[offsets[texts.offset] : offsets[texts.offset + len(texts)]]
    special = octets[(octets < 0x20) | (octets == ord('"')) | (octets == ord("\\"))]
    present = set(np.unique(special).tolist())
    for code, escape in _ESCAPES.items():
        if code in present:
            texts = pc.replace_substring(texts, pattern=bytes([code]), replacement=escape)
    return texts


def _condensed(parts: Sequence[Part]) -> list[Part]:
    """The parts, those that all rows have in common joined where they follow each other."""
    pieces: list[Part] = []
    for part in parts:
        if isinstance(part, bytes) and pieces and isinstance(pieces[-1], bytes):
            pieces[-1] += part
        elif not isinstance(part, bytes) or part:
            pieces.append(part)
    return pieces
