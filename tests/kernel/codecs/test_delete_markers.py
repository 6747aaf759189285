"""Rows with a delete marker: one that deletes needs only its key, in every format."""

from __future__ import annotations

import io
import json
from typing import Any, Final

import pyarrow as pa
import pytest

from app.kernel.codecs import Format
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.change_schema import MarkedSchema, marked_schema
from tests.kernel.codecs.changes import ndjson, stepwise
from tests.kernel.codecs.samples import arrow_stream, parquet, schema_of

ITEMS: Final = schema_of({"id": "int64!", "name": "string!", "price": "decimal(6, 2)", "gone": "boolean"})
MARKED: Final = marked_schema(ITEMS, ["id"], "gone")
DELETED: Final = [{"id": 1, "name": "x", "gone": False}, {"id": 2, "gone": True}, {"id": 3, "name": "z"}]
MARKERS: Final = [False, True, None]
each_format = pytest.mark.parametrize("form", list(Format))


def body(form: Format, rows: list[dict[str, Any]]) -> bytes:
    match form:
        case Format.NDJSON:
            return ndjson(*rows)
        case Format.JSON_ROWS:
            return json.dumps(rows).encode()
        case Format.CSV:
            names = list(dict.fromkeys(name for row in rows for name in row))
            cells = [
                ["" if row.get(name) is None else json.dumps(row[name]) for name in names] for row in rows
            ]
            return "\n".join(",".join(line) for line in [names, *cells]).encode()
    names = {name for row in rows for name in row}
    kinds = pa.schema([field.with_nullable(True) for field in ITEMS.to_arrow() if field.name in names])
    table = pa.Table.from_pylist(rows, schema=kinds)
    return parquet(table) if form is Format.PARQUET else arrow_stream(table)


@each_format
def test_row_that_deletes_needs_only_its_key(form: Format) -> None:
    found = stepwise(form, body(form, DELETED), MARKED)
    assert found.select(["id", "name", "gone"]).to_pylist() == [
        {"id": id_, "name": name, "gone": gone}
        for id_, name, gone in zip([1, 2, 3], ["x", None, "z"], MARKERS, strict=True)
    ]
    with pytest.raises(SchemaMismatch):
        stepwise(form, body(form, DELETED), ITEMS)


@each_format
@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ({"id": 1, "gone": False}, "/name"),
        ({"id": 1, "price": "1.00"}, "/name"),
        ({"name": "x", "gone": True}, "/id"),
    ],
)
def test_other_rows_need_every_required_column(form: Format, row: dict[str, Any], pointer: str) -> None:
    if "price" in row and form in (Format.ARROW, Format.PARQUET):
        row = {"id": 1, "price": None}
    rows = [{"id": 9, "name": "y", "gone": None}, row]
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    data = body(form, rows)
    with pytest.raises(SchemaMismatch) as caught:
        stepwise(form, data, MARKED)
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == f"/rows/1{pointer}"
    tables = list(iter_tables(form, io.BytesIO(data), MARKED, bad_records=bad_records))
    bad_records.close()
    assert [row["id"] for table in tables for row in table.to_pylist()] == [9]
    assert len(kept) == 1


@pytest.mark.parametrize("form", [Format.CSV, Format.ARROW, Format.PARQUET])
def test_columns_without_the_marker_have_every_required_one(form: Format) -> None:
    with pytest.raises(SchemaMismatch, match="a column"):
        stepwise(form, body(form, [{"id": 1}]), MARKED)


def test_schema_is_that_of_all_rows_where_nothing_else_is_required() -> None:
    optional = schema_of({"id": "int64!", "gone": "boolean"})
    assert marked_schema(optional, ["id"], "gone") is optional
    assert marked_schema(ITEMS, ["id"], None) is ITEMS
    assert isinstance(MARKED, MarkedSchema)
    assert MARKED.unmarked().fields == ITEMS.fields
