"""What a table contains, in few numbers that every system must agree on, whatever the order of its rows.

A column is the sum of the hashes of its values. The sum of the hashes of whole rows shows values that have moved from
one row to another.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from bench.trips import SCHEMA

_KEY: Final = "uuid"
_NULL: Final = np.uint64(0x9E3779B97F4A7C15)
_WORD_BYTES: Final = 8
_BLOCK_ROWS: Final = 65_536
Hashes = npt.NDArray[np.uint64]


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """`rows` and `keys` count rows and distinct keys; `columns` and `whole` are sums of hashes, in hexadecimal."""

    rows: int
    keys: int
    whole: str
    columns: dict[str, str]


def contents_of(tables: Iterable[pa.Table]) -> Contents:
    """The contents of the rows of these tables, which have the columns of trips, and others that do not count."""
    rows, whole = 0, np.uint64(0)
    columns = dict.fromkeys(SCHEMA.names, np.uint64(0))
    keys: list[Hashes] = []
    with np.errstate(over="ignore"):
        for table in tables:
            rows += table.num_rows
            found = np.zeros(table.num_rows, np.uint64)
            for name in columns:
                hashes = _hashes(table[name])
                columns[name] += hashes.sum(dtype=np.uint64)
                found = _mixed(found + hashes)
                if name == _KEY:
                    keys.append(hashes)
            whole += found.sum(dtype=np.uint64)
    distinct = len(np.unique(np.concatenate(keys))) if keys else 0
    sums = {name: f"{int(value):016x}" for name, value in columns.items()}
    return Contents(rows=rows, keys=distinct, whole=f"{int(whole):016x}", columns=sums)


def _hashes(column: pa.ChunkedArray) -> Hashes:
    parts = [_hashes_of(chunk) for chunk in column.chunks]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _hashes_of(values: pa.Array) -> Hashes:
    """A value has the same hash whether its column is a dictionary or not, and whatever the width of its type."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        hashes = np.append(_hashes_of(values.dictionary), _NULL)
        found: Hashes = hashes[np.asarray(pc.fill_null(values.indices.cast(pa.int64()), len(hashes) - 1))]
        return found
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        wide = values.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64())
        found = _mixed(np.ascontiguousarray(pc.fill_null(wide, 0)).view(np.uint64))
    else:
        found = _of_texts(pc.fill_null(values.cast(pa.large_string()), ""))
    return np.where(np.asarray(values.is_null()), _NULL, found) if values.null_count else found


def _of_texts(texts: pa.LargeStringArray) -> Hashes:
    _, ends, data = texts.buffers()
    offsets = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(data or b"", np.uint8)
    lengths = np.diff(offsets)
    hashes = np.zeros(len(texts), np.uint64)
    for length in np.unique(lengths):
        alike = np.flatnonzero(lengths == length)
        for at in range(0, len(alike), _BLOCK_ROWS):
            block = alike[at : at + _BLOCK_ROWS]
            characters = content[offsets[block][:, None] + np.arange(length)]
            hashes[block] = _of_characters(characters)
    return hashes


def _of_characters(characters: npt.NDArray[np.uint8]) -> Hashes:
    """Of texts of one length, a row each."""
    rows, length = characters.shape
    padded = np.zeros((rows, -(-length // _WORD_BYTES) * _WORD_BYTES), np.uint8)
    padded[:, :length] = characters
    hashes = _mixed(np.full(rows, length, np.uint64))
    for word in padded.view(np.uint64).T:
        hashes = _mixed(hashes ^ word)
    return hashes


def _mixed(values: Hashes) -> Hashes:
    """The finalizer of splitmix64: each bit of a value changes half of the bits of the result."""
    values = values + _NULL
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
