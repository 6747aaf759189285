"""Partition paths: `field=value/field=value`, Hive's form, percent-escaped so that any value is a safe folder name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

_SAFE: Final = " "
_SEGMENT_CHARACTERS_MAX: Final = 200


def partition_path(fields: Sequence[str], values: Sequence[str]) -> str:
    """The path of one partition; the empty string for a dataset without partitions."""
    return "/".join(_segment(field, value) for field, value in zip(fields, values, strict=True))


def _segment(field: str, value: str) -> str:
    # quote() keeps dots; the `field=` before a value already makes `..` harmless.
    text = f"{quote(field, safe=_SAFE)}={quote(value, safe=_SAFE)}"
    if len(text) <= _SEGMENT_CHARACTERS_MAX:
        return text
    # File systems end names at 255 bytes; the digest keeps shortened names apart.
    return f"{text[: _SEGMENT_CHARACTERS_MAX - 17]}~{xxhash.xxh64_hexdigest(text.encode())}"


def partition_codes(rows: pa.Table, fields: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """Each row's partition as an index (int32, shape (rows,)) into the returned paths.

    Partition fields hold no nulls: a dataset with partitions makes them required.
    """
    if not fields:
        return np.zeros(rows.num_rows, dtype=np.int32), [""]
    columns = [pc.cast(rows.column(name), pa.string()) for name in fields]
    encoded = [pc.dictionary_encode(column.combine_chunks()) for column in columns]
    encoded = [array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array for array in encoded]
    codes = np.zeros(rows.num_rows, dtype=np.int64)
    for array in encoded:
        codes = codes * len(array.dictionary) + array.indices.to_numpy(zero_copy_only=False)
    unique, inverse = np.unique(codes, return_inverse=True)
    return inverse.astype(np.int32), [_path_of(int(code), fields, encoded) for code in unique]


def _path_of(code: int, fields: Sequence[str], encoded: Sequence[pa.DictionaryArray]) -> str:
    values: list[str] = []
    for array in reversed(encoded):
        code, index = divmod(code, len(array.dictionary))
        values.append(array.dictionary[index].as_py())
    return partition_path(fields, values[::-1])
