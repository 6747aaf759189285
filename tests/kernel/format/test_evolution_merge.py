"""Schemas that a write brings: what its values look like, and what that makes of the table's schema."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.kernel.codecs.records import RECORD_FIELDS
from app.kernel.codecs.shape_inference import (
    CHANGES_OF_NO_COLUMNS,
    infer_record_shapes,
    infer_shapes,
)
from app.kernel.codecs.splits import Split, plan_splits
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_merge import merge_schemas
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.shapes import NULLS, Objects, Shape, common_members, common_shape
from app.kernel.format.schema.value_shapes import shape_of

FIELDS = {
    "k": "int32",
    "small": "int8",
    "n": "int32",
    "u": "uint16",
    "f": "float",
    "d": "double",
    "day": "date",
    "ms": "timestamp(ms)",
    "s": "string",
    "o": "struct<a: int8, b: string>",
    "l": "list<int16>",
    "m": "map<string, int32>",
    "p": "decimal(5, 2)",
}
DATASET = define_dataset(
    CreateDataset(
        name="t",
        schema=CreateSchema(fields=[CreateField(name=name, type=kind) for name, kind in FIELDS.items()]),
        record_key=["k"],
    )
)


def types_after(found: DatasetDefinition | None) -> dict[str, str]:
    """The types of the fields that are new or have another type."""
    if found is None:
        return {}
    return {field.name: field.type for field in found.schema.fields if FIELDS.get(field.name) != field.type}


def merged(*rows: dict[str, Any], explicit_cast: bool = False) -> dict[str, str]:
    """What JSON rows make of the types."""
    content = json.dumps(list(rows)).encode()
    shapes = infer_shapes(Format.JSON_ROWS, io.BytesIO(content), Split())
    found = merge_schemas(DATASET, shapes, explicit_cast=explicit_cast)
    if found is not None:
        # What was inferred from the rows takes the rows.
        tables = list(iter_tables(Format.JSON_ROWS, io.BytesIO(content), found.schema))
        assert sum(table.num_rows for table in tables) == len(rows)
    return types_after(found)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([True, None, False], "boolean"),
        ([1, None, -(2**63)], "int64"),
        ([1, 1.5], "double"),
        ([1e3], "double"),
        (["a", "2026-01-01"], "string"),
        (["2026-01-01"], "string"),
        ([{"a": 1}, {"b": {"c": True}}, None], "struct<a: int64, b: struct<c: boolean>>"),
        ([[1], [], [2.5, None]], "list<double>"),
        ([[{"x": 1}], [{"y": "a"}]], "list<struct<x: int64, y: string>>"),
    ],
)
def test_new_column_has_the_type_of_its_values(values: list[Any], kind: str) -> None:
    assert merged(*({"k": 1, "new": value} for value in values)) == {"new": kind}


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["2026-01-01", None], "date"),
        (["2026-01-01T01:02:03Z", "2026-01-01 01:02:03.123456+02:00"], "timestamp"),
        (["2026-01-01T01:02:03"], "string"),
        (["2026-01-01T01:02:03Z", "2026-01-01"], "string"),
        (["2026-13-01"], "string"),
        (["2026-02-30T01:02:03Z"], "string"),
        ([["2026-01-01"]], "list<date>"),
    ],
)
def test_text_becomes_a_time_only_with_explicit_cast(values: list[Any], kind: str) -> None:
    assert merged(*({"k": 1, "new": value} for value in values), explicit_cast=True) == {"new": kind}


@pytest.mark.parametrize(
    ("row", "types"),
    [
        ({"small": 127, "n": 2**31 - 1, "u": 65_535, "f": 0.1, "d": 1, "s": "x"}, {}),
        ({"small": 128}, {"small": "int16"}),
        ({"small": 2**40}, {"small": "int64"}),
        ({"small": 0.5}, {"small": "double"}),
        ({"n": 2**31}, {"n": "int64"}),
        ({"n": 2.5}, {"n": "double"}),
        ({"u": -1}, {"u": "int32"}),
        ({"u": 65_536}, {"u": "uint32"}),
        ({"o": {"a": 300}}, {"o": "struct<a: int16, b: string>"}),
        ({"o": {"c": True, "b": None}}, {"o": "struct<a: int8, b: string, c: boolean>"}),
        ({"l": [1, 70_000]}, {"l": "list<int32>"}),
        ({"m": {"x": 1, "y": 2**40}}, {"m": "map<string, int64>"}),
        ({"ms": "2026-01-01T00:00:00.123Z"}, {}),
        ({"ms": "2026-01-01T00:00:00.123400Z"}, {"ms": "timestamp"}),
        ({"small": None, "o": None, "l": [], "m": {}}, {}),
    ],
)
def test_column_is_widened_for_its_values(row: dict[str, Any], types: dict[str, str]) -> None:
    assert merged({"k": 1, **row}) == types


def test_date_becomes_a_timestamp_only_with_explicit_cast() -> None:
    times = {"k": 1, "day": "2026-01-01T01:02:03Z"}
    assert merged(times) == {}
    assert merged(times, explicit_cast=True) == {"day": "timestamp"}


@pytest.mark.parametrize(
    "row",
    [{"k": 2**40}, {"s": 1}, {"n": "1"}, {"n": True}, {"d": "x"}, {"o": [1]}, {"l": {"a": 1}}, {"n": 2**70}],
)
def test_value_beyond_every_wider_type_is_refused_by_the_decoder(row: dict[str, Any]) -> None:
    found = merge_schemas(DATASET, {name: shape_of(value) for name, value in row.items()}, explicit_cast=True)
    assert all("int" in kind or kind == "double" for kind in types_after(found).values())
    content = json.dumps([{"k": 1, **row}]).encode()
    with pytest.raises(SchemaMismatch):
        list(iter_tables(Format.JSON_ROWS, io.BytesIO(content), (found or DATASET).schema))


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([{"new": []}], "has arrays without values only"),
        ([{"new": [None]}], "has arrays without values only"),
        ([{"new": {}}], "has objects without values only"),
        ([{"new": {"a": None}}], "has objects without values only"),
        ([{"new": json.loads("[" * 17 + "]" * 17)}], "is nested more than 16 deep"),
    ],
)
def test_column_that_cannot_be_added_is_named(rows: list[dict[str, Any]], reason: str) -> None:
    shapes = infer_shapes(Format.JSON_ROWS, io.BytesIO(json.dumps(rows).encode()), Split())
    with pytest.raises(SchemaMismatch) as caught:
        merge_schemas(DATASET, shapes, explicit_cast=False)
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == "/rows"
    assert f"the field 'new' {reason}" in error["detail"]


@pytest.mark.parametrize(
    ("row", "pointer", "reason"),
    [
        ({"N": 1}, "/rows/1/N", 'it has "n"'),
        ({"_hw_x": 1}, "/rows/1/_hw_x", "are reserved"),
        ({"": 2}, "/rows/1/", "printable characters"),
        ({"a\n/b": 1}, "/rows/1/a\n~1b", "printable characters"),
    ],
)
def test_name_that_no_field_can_have_is_an_error_of_its_row(
    row: dict[str, Any], pointer: str, reason: str
) -> None:
    content = json.dumps([{"k": 1, "new": 1}, {"k": 2, **row}]).encode()
    found = merge_schemas(
        DATASET, infer_shapes(Format.JSON_ROWS, io.BytesIO(content), Split()), explicit_cast=False
    )
    assert found is not None
    assert types_after(found) == {"new": "int64"}
    with pytest.raises(SchemaMismatch) as caught:
        list(iter_tables(Format.JSON_ROWS, io.BytesIO(content), found.schema))
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == pointer
    assert reason in error["detail"]


@pytest.mark.parametrize(
    ("values", "kind", "pointer"),
    [
        ([1, "a", 2.5], "double", "/rows/1/new"),
        (["a", 1], "string", "/rows/1/new"),
        ([[1, [1]]], "list<int64>", "/rows/0/new/1"),
        ([10**38], "int64", "/rows/0/new"),
        ([2**63, 0.5], "decimal(38, 1)", None),
        ([2**53 + 1, 0.5], "decimal(38, 1)", None),
    ],
)
def test_values_of_another_kind_than_the_first_are_errors_of_their_rows(
    values: list[Any], kind: str, pointer: str | None
) -> None:
    content = json.dumps([{"k": 1, "new": value} for value in values]).encode()
    shapes = infer_shapes(Format.JSON_ROWS, io.BytesIO(content), Split())
    found = merge_schemas(DATASET, shapes, explicit_cast=False)
    assert found is not None
    assert types_after(found) == {"new": kind}
    if pointer is None:
        list(iter_tables(Format.JSON_ROWS, io.BytesIO(content), found.schema))
        return
    with pytest.raises(SchemaMismatch) as caught:
        list(iter_tables(Format.JSON_ROWS, io.BytesIO(content), found.schema))
    assert [error["pointer"] for error in caught.value.facts["errors"]] == [pointer]


@pytest.mark.parametrize(
    ("name", "values", "type_"),
    [
        ("n", [1234567890123456789], "int64"),
        ("n", [2**53 + 1, 0.5], "int32"),
        ("n", [2**63], "int32"),
        ("p", [1234], "decimal(6, 2)"),
        ("p", [1.125], "decimal(5, 2)"),
        ("p", [10**36], "decimal(5, 2)"),
    ],
)
@pytest.mark.parametrize("form", [Format.CSV, Format.JSON_ROWS])
def test_column_is_never_widened_to_a_type_that_loses_digits(
    name: str, values: list[Any], type_: str, form: Format
) -> None:
    rows = [{name: value} for value in values]
    content = json.dumps(rows) if form is Format.JSON_ROWS else "\n".join(map(str, [name, *values]))
    shapes = infer_shapes(form, io.BytesIO(content.encode()), Split())
    found = merge_schemas(DATASET, shapes, explicit_cast=False) or DATASET
    assert {field.name: field.type for field in found.schema.fields}[name] == type_


@pytest.mark.parametrize(
    ("rows", "types"),
    [
        ([{"new": None}], {}),
        ([{"new": None}, {"new": 1}], {"new": "int64"}),
        ([{"new": {"a": 1, "b": None}}], {"new": "struct<a: int64>"}),
        ([{"o": {"z": None, "b": "x"}}], {}),
        ([{"_hw_x": None, "N": None}], {}),
    ],
)
def test_field_gets_its_type_with_its_first_value(rows: list[dict[str, Any]], types: dict[str, str]) -> None:
    assert merged(*({"k": 1} | row for row in rows)) == types


def test_more_than_2000_fields_are_refused_while_reading() -> None:
    content = json.dumps([{f"c{number}": 1} for number in range(2_001)]).encode()
    with pytest.raises(SchemaMismatch, match="more than 2000 fields"):
        infer_shapes(Format.JSON_ROWS, io.BytesIO(content), Split())
    header = ",".join(f"c{number}" for number in range(2_001)).encode()
    with pytest.raises(SchemaMismatch, match="more than 2000 fields"):
        infer_shapes(Format.CSV, io.BytesIO(header), Split())


def test_csv_columns_have_the_narrowest_type_of_their_cells() -> None:
    text = b"k,b,i,x,t,day,at,e,n\n1,true,7,.5,a,2026-01-01,2026-01-01T00:00:00Z,,300\n"
    text += b"2,false,-8,1e3,7,2026-01-02,2026-01-01T00:00:00Z,,5\n3\n4,,,,,,,,\n"
    shapes = infer_shapes(Format.CSV, io.BytesIO(text), Split())
    del shapes["e"]
    found = merge_schemas(DATASET, shapes, explicit_cast=False)
    types = {"b": "boolean", "i": "int64", "x": "double", "t": "string", "at": "timestamp"}
    assert types_after(found) == types


def columnar(table: pa.Table, form: Format) -> io.BytesIO:
    body = io.BytesIO()
    if form is Format.PARQUET:
        pq.write_table(table, body)
    else:
        with ipc.new_stream(body, table.schema) as writer:
            writer.write_table(table)
    return body


@pytest.mark.parametrize("form", [Format.ARROW, Format.PARQUET])
def test_columnar_input_has_its_own_types(form: Format) -> None:
    table = pa.table(
        {
            "k": pa.array([1], pa.int32()),
            "small": pa.array([1], pa.uint8()),
            "n": pa.array([1], pa.int64()),
            "f": pa.array([1.5], pa.float64()),
            "day": pa.array([0], pa.date32()),
            "ms": pa.array([0], pa.timestamp("us", "Europe/Berlin")),
            "p": pa.array([Decimal("1.50")], pa.decimal128(9, 2)),
            "o": pa.array(
                [{"b": "x", "z": [1]}], pa.struct([("b", pa.string()), ("z", pa.list_(pa.int8()))])
            ),
            "new": pa.array(["x"], pa.large_string()),
            "words": pa.array([b"x"], pa.binary(1)),
            "pairs": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int32())),
        }
    )
    body = columnar(table, form)
    found = merge_schemas(DATASET, infer_shapes(form, body, Split()), explicit_cast=False)
    assert types_after(found) == {
        "small": "int16",
        "n": "int64",
        "f": "double",
        "ms": "timestamp",
        "p": "decimal(9, 2)",
        "o": "struct<a: int8, b: string, z: list<int8>>",
        "new": "string",
        "words": "binary",
        "pairs": "map<string, int32>",
    }
    assert found is not None
    [read] = iter_tables(form, body, found.schema)
    assert read.select(["small", "n", "new", "pairs"]).to_pylist() == [
        {"small": 1, "n": 1, "new": "x", "pairs": [("a", 1)]}
    ]


def test_unsupported_columnar_type_is_named() -> None:
    table = pa.table(
        {"k": pa.array([1], pa.int32()), "new": pa.array([(1, 2, 3)], pa.month_day_nano_interval())}
    )
    shapes = infer_shapes(Format.ARROW, columnar(table, Format.ARROW), Split())
    with pytest.raises(SchemaMismatch, match="of Arrow type month_day_nano_interval: months, days"):
        merge_schemas(DATASET, shapes, explicit_cast=True)


def test_redriven_records_bring_the_columns_of_each_record() -> None:
    records = pa.table(
        {
            "payload": [b'{"k": 1, "a": 1}', b"2,true", b"no json", b'{"k": 3, "a": 2.5, "b": "x"}'],
            "header": [None, b"k,c", None, None],
        },
        schema=pa.schema(RECORD_FIELDS),
    )
    source = columnar(records, Format.PARQUET)
    found = merge_schemas(DATASET, infer_record_shapes(source, Split()), explicit_cast=False)
    assert types_after(found) == {"a": "double", "c": "boolean", "b": "string"}


def test_shape_of_changes_is_that_of_their_rows() -> None:
    lines = [
        {"op": "+A", "row": {"k": 1, "a": 1}, "offset": 5},
        {"op": "u", "before": {"k": 1, "b": True}, "after": {"k": 1, "a": 2.5}, "source": {"ts_ms": 1}},
        {"schema": {"type": "struct"}, "payload": {"op": "d", "before": {"k": 1, "c": "x"}, "after": None}},
        None,
        {"payload": None},
    ]
    content = b"\n".join(json.dumps(line).encode() for line in lines)
    shapes = infer_shapes(Format.NDJSON, io.BytesIO(content), Split(), schema=CHANGES_OF_NO_COLUMNS)
    found = merge_schemas(DATASET, shapes, explicit_cast=False)
    assert types_after(found) == {"a": "double", "b": "boolean", "c": "string"}
    flat = columnar(pa.table({"op": ["+A"], "k": pa.array([1], pa.int32()), "new": [1]}), Format.ARROW)
    shapes = infer_shapes(Format.ARROW, flat, Split(), schema=CHANGES_OF_NO_COLUMNS)
    assert types_after(merge_schemas(DATASET, shapes, explicit_cast=False)) == {"new": "int64"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(JSON, max_size=6), st.integers(0, 6))
def test_shapes_of_parts_merge_to_the_shape_of_the_whole(values: list[Any], cut: int) -> None:
    def whole(some: list[Any]) -> Shape:
        found: Shape = NULLS
        for value in some:
            found = common_shape(found, shape_of(value))
        return found

    def unordered(shape: Shape) -> object:
        # Which of several reasons a mixture has depends on the order of their occurrence.
        return (
            msgspec.json.encode(shape, order="sorted") if b"mixed" not in msgspec.json.encode(shape) else None
        )

    parts = common_shape(whole(values[:cut]), whole(values[cut:]))
    assert unordered(parts) == unordered(whole(values))
    packed = msgspec.msgpack.encode(parts)
    assert msgspec.msgpack.decode(packed, type=Shape) == parts


def test_shapes_of_ndjson_splits_merge_to_the_shape_of_the_body() -> None:
    rows = [
        {"k": number, f"c{number % 3}": number, "note": None if number % 2 else "x"} for number in range(50)
    ]
    content = b"\n".join([*(json.dumps(row).encode() for row in rows), b"{broken", b"[]", b"\xff"])
    source = io.BytesIO(content)
    shapes: dict[str, Shape] = {}
    for split in plan_splits(Format.NDJSON, source, len(content), 100):
        shapes = common_members(shapes, infer_shapes(Format.NDJSON, source, split))
    whole = infer_shapes(Format.NDJSON, source, Split())
    assert Objects(members=shapes) == Objects(members=whole)
    assert types_after(merge_schemas(DATASET, shapes, explicit_cast=False)) == {
        "c0": "int64",
        "c1": "int64",
        "c2": "int64",
        "note": "string",
    }
