"""Unknown fields that are null: they are ignored and named, however the rows arrive; values in them are refused."""

from __future__ import annotations

import io
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs.json.row_reader import RowReader
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.schema import Schema
from tests.kernel.codecs.samples import schema_of

SCHEMA = schema_of(
    {"id": "int64!", "note": "string", "place": "struct<x: int64>", "all": "list<struct<x: int64>>"}
)


def read(
    form: Format, content: bytes, schema: Schema = SCHEMA, bad_records: BadRecords | None = None
) -> tuple[list[dict[str, Any]], set[str]]:
    """The rows, without columns that are null, and the ignored fields."""
    ignored: set[str] = set()
    tables = iter_tables(form, io.BytesIO(content), schema, bad_records=bad_records, ignored_fields=ignored)
    rows = [row for table in tables for row in table.to_pylist()]
    return [{name: value for name, value in row.items() if value is not None} for row in rows], ignored


def ndjson(*rows: dict[str, Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def columnar(form: Format, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    if form is Format.PARQUET:
        pq.write_table(table, sink)
    else:
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("form", [Format.NDJSON, Format.JSON_ROWS])
@pytest.mark.parametrize(
    ("rows", "stored", "ignored"),
    [
        ([{"id": 1, "new": None}, {"id": 2}], [{"id": 1}, {"id": 2}], {"new"}),
        ([{"id": 1}, {"id": 2, "a.b": None, "2024": None}], [{"id": 1}, {"id": 2}], {"a.b", "2024"}),
        ([{"id": 1, "place": {"x": 5, "y": None}}], [{"id": 1, "place": {"x": 5}}], {"place.y"}),
        (
            [{"id": 1, "all": [{"x": 1}, {"y": None, "x": 2}, None]}],
            [{"id": 1, "all": [{"x": 1}, {"x": 2}, None]}],
            {"all.y"},
        ),
        ([{"id": 1, "_hw_version": "x", "new": None}], [{"id": 1}], {"new"}),
    ],
)
def test_null_members_that_the_schema_does_not_have_are_ignored(
    form: Format, rows: list[dict[str, Any]], stored: list[dict[str, Any]], ignored: set[str]
) -> None:
    content = ndjson(*rows) if form is Format.NDJSON else json.dumps(rows).encode()
    assert read(form, content) == (stored, ignored)


@pytest.mark.parametrize("place", [{"x": 1}, {"y": None}])
@pytest.mark.parametrize("late", [{}, {"late": None}])
def test_rows_with_ignored_members_are_decoded_together(place: dict[str, Any], late: dict[str, Any]) -> None:
    rows: list[dict[str, Any]] = [{"id": number, "new": None, "place": place} for number in range(100)]
    rows[70] = {"id": 70}
    texts = [json.dumps(row).encode() for row in [*rows, {"id": 100, **late}]]
    ignored: set[str] = set()
    table = RowReader(SCHEMA).decode_batch(texts, ignored)
    assert table is not None
    assert table.column("id").to_pylist() == list(range(101))
    assert ignored == {"new", *late} | ({"place.y"} if "y" in place else set())
    # The next rows do not have them, or have others.
    assert RowReader(SCHEMA).decode_batch([b'{"id": 4}'], ignored) is not None
    assert RowReader(SCHEMA).decode_batch([b'{"id": 4, "other": null}'], ignored) is not None
    assert "other" in ignored
    assert RowReader(SCHEMA).decode_batch([b'{"id": 4, "other": 1}'], ignored) is None
    assert RowReader(SCHEMA).decode_batch([b'{"id": 4, "other": null, "other": null}'], ignored) is None


@pytest.mark.parametrize(
    ("row", "pointer"),
    [
        ({"id": 2, "new": 1}, "/new"),
        ({"id": 2, "new": False}, "/new"),
        ({"id": 2, "place": {"y": 0}}, "/place/y"),
    ],
)
def test_value_of_an_unknown_member_is_an_error_of_its_row(row: dict[str, Any], pointer: str) -> None:
    content = ndjson({"id": 1, "new": None}, row)
    with pytest.raises(SchemaMismatch) as caught:
        read(Format.NDJSON, content)
    assert [error["pointer"] for error in caught.value.facts["errors"]] == [f"/rows/1{pointer}"]
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    assert read(Format.NDJSON, content, bad_records=bad_records) == ([{"id": 1}], {"new"})
    bad_records.close()
    assert [record.position for record in kept] == [1]


def test_repeated_unknown_member_is_an_error() -> None:
    with pytest.raises(SchemaMismatch, match="more than once"):
        read(Format.NDJSON, b'{"id": 1, "new": null, "new": null}')


@pytest.mark.parametrize(
    "content", [b"id,new,note,_x\n1,,a,\n2,,,\n", b"id,new,note,_x\n", b"id,new,note,_x\n1,,a,\n2,,b,c,d\n"]
)
def test_csv_columns_of_nulls_are_ignored(content: bytes) -> None:
    bad_records = BadRecords(write=lambda _: None)
    rows, ignored = read(Format.CSV, content, bad_records=bad_records)
    assert ignored == ({"new", "_x"} if b"\n1" in content else set())
    assert all(row.keys() <= {"id", "note"} for row in rows)


@pytest.mark.parametrize("content", [b"id,new\n1,\n2,x\n", b'id,new\n1,\n2,""\n'])
def test_value_in_an_unknown_csv_column_is_an_error_of_its_record(content: bytes) -> None:
    reason = '/rows/1/new: column 2 of the header line: the schema has no field "new"'
    with pytest.raises(SchemaMismatch, match=reason):
        read(Format.CSV, content)
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    assert read(Format.CSV, content, bad_records=bad_records) == ([{"id": 1}], {"new"})
    bad_records.close()
    assert [(record.position, record.errors[0].pointer) for record in kept] == [(1, "/new")]


def test_value_of_an_unknown_csv_column_in_a_bad_row_does_not_count() -> None:
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    rows, ignored = read(Format.CSV, b"id,new\n1,\nx,5\n", bad_records=bad_records)
    bad_records.close()
    assert (rows, ignored, len(kept)) == ([{"id": 1}], {"new"}, 1)


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_columns_of_the_null_type_are_ignored(form: Format) -> None:
    table = pa.table({"id": [1], "new": pa.nulls(1), "note": pa.nulls(1)})
    assert read(form, columnar(form, table)) == ([{"id": 1}], {"new"})
    typed = pa.table({"id": [1], "new": pa.nulls(1, pa.string())})
    with pytest.raises(SchemaMismatch, match='no field "new"'):
        read(form, columnar(form, typed))


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_members_of_the_null_type_are_ignored(form: Format) -> None:
    rows = [{"id": 1, "place": {"x": 5, "y": None}, "all": [{"z": None, "x": 1}, None]}]
    assert read(form, columnar(form, pa.Table.from_pylist(rows))) == (
        [{"id": 1, "place": {"x": 5}, "all": [{"x": 1}, None]}],
        {"place.y", "all.z"},
    )
    typed = pa.table({"id": [1], "place": pa.array([{"y": None}], pa.struct({"y": pa.string()}))})
    with pytest.raises(SchemaMismatch, match='column "place": expected struct<x: int64>'):
        read(form, columnar(form, typed))


def test_null_members_of_rows_in_an_envelope_are_ignored() -> None:
    row = {"id": 1, "new": None, "place": {"x": 1, "y": None}}
    table = pa.Table.from_pylist([{"op": "c", "before": None, "after": row}])
    rows, ignored = read(Format.ARROW, columnar(Format.ARROW, table), change_schema(SCHEMA, ("id",)))
    assert ([(each["id"], each["place"]) for each in rows], ignored) == ([(1, {"x": 1})], {"new", "place.y"})


def test_null_members_of_changes_are_ignored() -> None:
    schema = change_schema(SCHEMA, ("id",))
    records = [
        {"op": "+A", "row": {"id": 1, "new": None}},
        {"op": "u", "before": {"id": 1, "old": None}, "after": {"id": 1}},
    ]
    rows, ignored = read(Format.NDJSON, ndjson(*records), schema)
    assert (len(rows), ignored) == (3, {"new", "old"})


MEMBERS = st.dictionaries(
    st.sampled_from(["note", "new", "other", "a~b/c"]), st.none() | st.text(max_size=2), max_size=3
)


@given(st.lists(MEMBERS, min_size=1, max_size=8))
def test_ignored_fields_are_those_that_are_null(rows: list[dict[str, Any]]) -> None:
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    content = ndjson(*({"id": number, **row} for number, row in enumerate(rows)))
    stored, ignored = read(Format.NDJSON, content, bad_records=bad_records)
    bad_records.close()
    bad = {
        number
        for number, row in enumerate(rows)
        if any(row.get(name) is not None for name in row.keys() - {"note"})
    }
    assert {record.position for record in kept} == bad
    good = [(number, row) for number, row in enumerate(rows) if number not in bad]
    assert [row["id"] for row in stored] == [number for number, _ in good]
    assert ignored == {name for _, row in good for name in row if name != "note"}
