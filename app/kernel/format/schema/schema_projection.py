"""Rows under another version of the schema: columns are matched by field id, and cast.

A file can be read under any schema of its dataset, earlier or later than the one it was written under: it carries the
ids of its columns, and an id never changes and is never reused. Members of structs are matched by name, which never
changes either.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.schema import FIELD_ID_MAX, RESERVED_PREFIX
from app.kernel.format.schema.types import FIELD_ID_METADATA


def field_id(field: pa.Field) -> int | None:
    """The id in the field's metadata; None for a column of the format itself, whose id other engines use alone."""
    stored_id = (field.metadata or {}).get(FIELD_ID_METADATA)
    return None if stored_id is None or int(stored_id) > FIELD_ID_MAX else int(stored_id)


def sources(stored_schema: pa.Schema, target: pa.Schema) -> list[str | None]:
    """For each column of `target`, the name of its stored column; None where there is no such column.

    Columns are matched by id; the format's own columns (such as `_hw_op`) by name, since files of earlier releases have
    no ids for them. Raises ValueError if a stored column of the dataset has no id: its values would be lost.
    """
    if stored_schema.equals(target, check_metadata=True):
        return list(target.names)
    columns = [(field_id(field), field.name) for field in stored_schema]
    names_without_id = [
        name for number, name in columns if number is None and not name.startswith(RESERVED_PREFIX)
    ]
    if names_without_id:
        raise ValueError(f"stored columns carry no field id: {names_without_id}")
    by_id = {number: name for number, name in columns if number is not None}
    own = {name: name for number, name in columns if number is None}
    return [
        own.get(field.name) if (number := field_id(field)) is None else by_id.get(number) for field in target
    ]


def project_rows(rows: pa.Table, target: pa.Schema) -> pa.Table:
    """The rows with the columns, names and types of `target`; null where a row has no such column.

    Raises pyarrow.ArrowInvalid for a value that the type of `target` cannot hold; a later schema never causes this.
    """
    if rows.schema.equals(target, check_metadata=True):
        _refuse_nulls(rows.columns, target)
        return rows
    columns = [
        pa.chunked_array([pa.nulls(rows.num_rows, field.type)])
        if name is None
        else _as_type(rows.column(name), field.type)
        for name, field in zip(sources(rows.schema, target), target, strict=True)
    ]
    _refuse_nulls(columns, target)
    return pa.table(columns, schema=target)


def _as_type(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if column.type.equals(kind):
        return column
    cast = column.cast(kind)
    if pa.types.is_timestamp(column.type) and pa.types.is_date(kind) and cast.cast(column.type) != column:
        raise pa.ArrowInvalid(f"a time of day does not fit {kind}")
    if pa.types.is_float32(kind) and _infinities(cast) != _infinities(column):
        raise pa.ArrowInvalid(f"a number is too large for {kind}")
    return cast


def _infinities(column: pa.ChunkedArray) -> int:
    if not pa.types.is_floating(column.type):
        return 0
    return int(pc.sum(pc.is_inf(column)).as_py() or 0)


def _refuse_nulls(columns: Sequence[pa.ChunkedArray], target: pa.Schema) -> None:
    for column, field in zip(columns, target, strict=True):
        if not field.nullable and column.null_count:
            raise pa.ArrowInvalid(f"{field.name!r} has nulls, but its field is required")
