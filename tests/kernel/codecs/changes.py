"""What the tests of changes as input share: a small dataset, and ways to read and write changes of it."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa

from app.kernel.codecs import Format, Split, iter_tables
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.changelog import OP_COLUMN, SYMBOLS
from app.kernel.format.schema.schema import Schema
from tests.kernel.codecs.samples import schema_of

ITEMS = schema_of({"id": "int64!", "name": "string!", "price": "decimal(6, 2)"})
CHANGES = change_schema(ITEMS, ["id"])
OpRows = list[tuple[str, dict[str, Any]]]


def op_rows(table: pa.Table) -> OpRows:
    """The changes as (symbol, row), of which absent values are left out."""
    assert table.column_names[0] == OP_COLUMN
    rows = table.drop_columns([OP_COLUMN]).to_pylist()
    return [
        (SYMBOLS[op], {name: value for name, value in row.items() if value is not None})
        for op, row in zip(table[OP_COLUMN].to_pylist(), rows, strict=True)
    ]


def ndjson(*records: Any) -> bytes:
    return b"\n".join(json.dumps(record).encode() for record in records) + b"\n"


def stepwise(form: Format, data: bytes, schema: Schema = CHANGES, split: Split | None = None) -> pa.Table:
    tables = list(iter_tables(form, io.BytesIO(data), schema, split=split or Split()))
    return pa.concat_tables([schema.to_arrow().empty_table(), *tables])


TEA = {"id": 1, "name": "tea"}
OOLONG = {"id": 1, "name": "oolong"}
