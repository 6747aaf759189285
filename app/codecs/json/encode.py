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

This module imports polars, which needs memory: import it only where rows are served.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from app.codecs.arrow.arrow_casts import packed_offsets
from app.codecs.json.objects import timestamp_texts, to_objects
from app.format.rows.changelog import SYMBOLS

_CHANGE_MEMBERS: Final = ("offset", "op", "version", "corrects_offset", "system_time", "event_time", "row")
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
        times = columns["system_time"].combine_chunks().dictionary_encode()
        columns["system_time"] = pc.take(timestamp_texts(times.dictionary), times.indices)
    named = {names.get(name, name): column for name, column in columns.items()}
    return _encode(pa.table(named), as_ndjson=as_ndjson)


def change_members(changes: pa.Table, symbols: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """The columns of changes in the order of their members; an op that is a code as its text."""
    order = [name for name in _CHANGE_MEMBERS if name in changes.column_names]
    order += [name for name in changes.column_names if name not in _CHANGE_MEMBERS]
    columns = {name: changes.column(name) for name in order}
    if "op" in columns and columns["op"].type == pa.uint8():
        columns["op"] = pc.take(pa.array(symbols, pa.string()), columns["op"])
    return columns


def _encode(table: pa.Table, *, as_ndjson: bool) -> bytes:
    if not table.num_columns or any(_holds_map(field.type) for field in table.schema):
        return _encode_objects(table, as_ndjson=as_ndjson)
    plain = pa.table({name: _plain_column(table.column(name)) for name in table.column_names})
    frame = pl.DataFrame(plain)
    out = io.BytesIO()
    if as_ndjson:
        frame.write_ndjson(out)
    else:
        frame.write_json(out)
    return out.getvalue()


def _plain_column(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not _needs_text(column.type):
        return column
    if column.null_count == len(column):
        # The event time is of the null type where a dataset has no event time.
        return pa.chunked_array([pa.nulls(len(column))])
    return pa.chunked_array([_plain(chunk) for chunk in column.chunks] or [_plain(pa.array([], column.type))])


def _plain(array: pa.Array) -> pa.Array:
    """The array with text instead of values that polars would write in another form, at any depth."""
    kind = array.type
    if not _needs_text(kind):
        return array
    if pa.types.is_timestamp(kind):
        return timestamp_texts(array)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        values = _plain(array.flatten())
        return pa.ListArray.from_arrays(packed_offsets(array), values, mask=array.is_null())
    if pa.types.is_struct(kind):
        columns = [_plain(child) for child in array.flatten()]
        return pa.StructArray.from_arrays(columns, [field.name for field in kind], mask=array.is_null())
    return _base64_texts(array)


def _needs_text(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _needs_text(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_needs_text(field.type) for field in kind)
    return bool(pa.types.is_timestamp(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _holds_map(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    return any(_holds_map(kind.field(number).type) for number in range(kind.num_fields))


def _base64_texts(array: pa.Array) -> pa.Array:
    encoded = pl.Series(values=array).bin.encode("base64")
    # Polars uses the null type for an array without values.
    return encoded.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())


def _encode_objects(table: pa.Table, *, as_ndjson: bool) -> bytes:
    """The slower encoder with Python objects, for maps, which polars does not have."""
    columns = [_column_objects(table.column(name)) for name in table.column_names]
    names = table.column_names
    rows = (
        [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        if names
        else [{}] * len(table)
    )
    encoder = msgspec.json.Encoder()
    return encoder.encode_lines(rows) if as_ndjson else encoder.encode(rows)


def _column_objects(column: pa.ChunkedArray) -> Iterable[Any]:
    return [value for chunk in column.chunks for value in to_objects(chunk)]
