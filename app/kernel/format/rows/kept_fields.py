"""Kept fields: fields of a row that have no value, since the row keeps the value that the table has for its key.

An incoming row names them in `_hw_kept`: the ids of the fields with commas between them, null where it keeps none. Its
own values of these fields are null. A table without such rows may lack the column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from app.kernel.format.rows.staging import ROW_COLUMN

KEPT_COLUMN: Final = "_hw_kept"
KEPT_FIELD: Final = pa.field(KEPT_COLUMN, pa.string())


def kept_text(ids: Iterable[int]) -> str | None:
    """The value of `_hw_kept` for the ids of fields; None without any."""
    return ",".join(map(str, sorted(ids))) or None


def kept_ids(text: str) -> frozenset[int]:
    """The ids in a value of `_hw_kept`."""
    return frozenset(map(int, text.split(",")))


def keeps_fields(rows: pa.Table) -> bool:
    """Whether one of the incoming rows keeps a field."""
    if KEPT_COLUMN not in rows.column_names:
        return False
    return bool(rows.column(KEPT_COLUMN).null_count < rows.num_rows)


def with_kept_column(rows: pa.Table) -> pa.Table:
    """The incoming rows with the column `_hw_kept`, before `_hw_row` if they have that."""
    if KEPT_COLUMN in rows.column_names:
        return rows
    at = rows.schema.get_field_index(ROW_COLUMN)
    place = rows.num_columns if at < 0 else at
    return rows.add_column(place, KEPT_FIELD, pa.nulls(rows.num_rows, KEPT_FIELD.type))
