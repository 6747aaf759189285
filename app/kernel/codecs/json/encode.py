"""Arrow tables to JSON, column by column.

A row is an object with every column in order, nulls included.
    integers     numbers, 64-bit ones too
    floats       the shortest decimals that parse to the same value
    decimals     strings with all digits of their scale
    dates        2026-11-21
    timestamps   2026-11-21T10:00:00Z, without the Z where the type has no zone; a fraction that is not zero
                 has as many digits as the unit: 3 of ms, 6 of us
    binary       base64 with padding
    maps         objects whose members are named by the text forms of the keys

The decoders of this package read the same values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.json.texts import content, joined, object_parts
from app.kernel.format.rows.changelog import SYMBOLS

_CHANGE_MEMBERS: Final = ("offset", "op", "version", "corrects_offset", "system_time", "event_time", "row")
_SLICE_ROWS: Final = 16_384
_AS_THEY_ARE: Final[Mapping[str, str]] = {}


def encode_rows_json(table: pa.Table) -> bytes:
    """The rows as one JSON array of objects."""
    return _encode(table, as_ndjson=False)


def encode_rows_ndjson(table: pa.Table) -> bytes:
    """The rows as newline-terminated JSON objects; the same objects as those of `encode_rows_json`."""
    return _encode(table, as_ndjson=True)


def encode_changes_json(
    changes: pa.Table,
    *,
    as_ndjson: bool,
    symbols: Sequence[str] = SYMBOLS,
    names: Mapping[str, str] = _AS_THEY_ARE,
) -> bytes:
    """Changes as objects `{"offset", "op": "+A", "version", …, "row": {…}}`, members in the order of `_CHANGE_MEMBERS`.

    The columns of `changes`, in any order: offset int64, op uint8 (0–3), version int64, corrects_offset int64,
    system_time timestamp (ms, UTC), event_time timestamp or null type, row struct of the columns of the dataset. Other
    delivery formats lack some of these and have others, which follow in their order; an op that is text is unchanged.
    `names`: of the members, by column, where they are not those of the columns.
    """
    columns = change_members(changes, symbols)
    if "system_time" in columns:
        # A commit has one time, so its text is created once.
        columns["system_time"] = columns["system_time"].dictionary_encode()
    members = {names.get(name, name): column for name, column in columns.items()}
    return _encode(pa.table(members), as_ndjson=as_ndjson)


def change_members(changes: pa.Table, symbols: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The columns of changes in the order of their members; an op that is a code as its text."""
    order = [name for name in _CHANGE_MEMBERS if name in changes.column_names]
    order += [name for name in changes.column_names if name not in _CHANGE_MEMBERS]
    columns = {name: changes.column(name) for name in order}
    if "op" in columns and columns["op"].type == pa.uint8():
        columns["op"] = pc.take(pa.array(symbols, pa.string()), columns["op"])
    return columns


def _encode(table: pa.Table, *, as_ndjson: bool) -> bytes:
    end = b"\n" if as_ndjson else b","
    rows = list(_rows(table, end))
    if as_ndjson:
        return b"".join(rows)
    if rows:
        rows[-1] = rows[-1][:-1]
    return b"".join([b"[", *rows, b"]"])


def _rows(table: pa.Table, end: bytes) -> Iterator[memoryview]:
    """The objects, and `end` behind each of them, some rows at a time."""
    if not table.num_columns:
        yield memoryview((b"{}" + end) * table.num_rows)
        return
    # Offsets of a slice fit in 32 bits, and its texts in the processor's caches.
    for start in range(0, table.num_rows, _SLICE_ROWS):
        part = table.slice(start, _SLICE_ROWS)
        columns = [column.combine_chunks() for column in part.columns]
        yield content(joined(object_parts(part.column_names, columns, end=end), len(part)))
