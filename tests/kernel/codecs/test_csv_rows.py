"""CSV rows: the grammar of cells and quotes, and what is refused in which words."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs import decode_csv
from app.kernel.codecs.json.encode import encode_rows_json
from app.kernel.codecs.value_parser import RejectedValue, read_text
from app.kernel.format.errors import BodyTooLarge, MalformedBody, SchemaMismatch
from app.kernel.format.schema.types import to_arrow
from tests.kernel.codecs.samples import scalar_types, schema_of, tables
from tests.support.examples import a_third_of
from tests.support.shares import share

SCHEMA = schema_of(
    {
        "id": "int32!",
        "name": "string",
        "flag": "boolean",
        "ratio": "double",
        "narrow": "float",
        "price": "decimal(5, 2)",
        "at": "timestamp",
        "wall": "timestamp_ntz(ms)",
        "day": "date",
        "raw": "binary",
        "place": "struct<x: int8, y: list<string>>",
        "tags": "map<string, int8>",
    }
)


@pytest.mark.parametrize(
    ("name", "cell", "value"),
    [
        ("name", "", None),
        ("name", '""', ""),
        ("name", " a ", " a "),
        ("name", '"a,""b""\r\nc"', 'a,"b"\r\nc'),
        ("name", "null", "null"),
        ("flag", "true", True),
        ("ratio", ".5", 0.5),
        ("ratio", "+1e3", 1000.0),
        ("narrow", "0.1", pa.scalar(0.1, pa.float32()).as_py()),
        ("price", "-1.500", "-1.50"),
        ("at", "2026-01-01 01:00:00+01", "2026-01-01 00:00:00+00:00"),
        ("wall", "2026-01-01T00:00:00.1230", "2026-01-01 00:00:00.123000"),
        ("day", "0001-01-01", "0001-01-01"),
        ("raw", "AP8=", b"\x00\xff"),
        ("place", '"{""y"": [""a"", null]}"', {"x": None, "y": ["a", None]}),
        ("place", "null", None),
        ("tags", "{}", []),
    ],
)
def test_cell_is_read_as_its_type(name, cell, value):
    table = decode_csv(f"{name},id\r\n{cell},1\r\n".encode(), SCHEMA)
    found = table[name][0].as_py()
    assert (str(found) if isinstance(value, str) and not isinstance(found, str) else found) == value
    assert table.schema == SCHEMA.to_arrow()
    assert table["id"].to_pylist() == [1]


@pytest.mark.parametrize(
    ("name", "cell", "reason"),
    [
        ("id", "", "a value is required"),
        ("id", '""', 'expected int32, got "", which is not written as an integer'),
        ("id", "007", "which is not written as an integer"),
        ("id", "0x1F", "which is not written as an integer"),
        ("id", "+1", "which is not written as an integer"),
        ("id", " 1", "which is not written as an integer"),
        ("id", "1.0", "which is not written as an integer"),
        ("id", "2147483648", "which is out of range"),
        ("flag", "1", "booleans are true or false"),
        ("flag", "TRUE", "booleans are true or false"),
        ("ratio", "nan", "which is not a finite number"),
        ("ratio", "inf", "which is not a finite number"),
        ("ratio", "1e999", "which is out of range"),
        ("ratio", "1_0", "which is not a finite number"),
        ("ratio", "1 ", "which is not a finite number"),
        ("narrow", "3.5e38", "which is out of range"),
        ("price", "1.005", "more than 2 digits after the point"),
        ("at", "2026-01-01T00:00:00", "which lacks a zone"),
        ("wall", "2026-01-01T00:00:00Z", "which has a zone"),
        ("wall", "2026-01-01", "which is not written as"),
        ("day", "01/02/2026", "which is not written as YYYY-MM-DD"),
        ("raw", "A", "which is not base64"),
        ("name", "\udcff", "invalid UTF-8"),
        ("price", "\udcff", "invalid UTF-8"),
        ("place", "x", "as JSON"),
        ("place", "[" * 5000, "nested too deeply"),
        ("place", '"{""x"": 1, ""x"": 1}"', "appears more than once"),
        ("place", '"{""x"": 1}{"', "as JSON"),
        ("tags", '"{""a"": 300}"', "out of range"),
    ],
)
def test_bad_cell_is_named_by_row_column_and_reason(name, cell, reason):
    columns = "id" if name == "id" else f"{name},id"
    rows = [cell] if name == "id" else [f"{cell},1"]
    good = ["1"] if name == "id" else [",1"]
    lines = [columns, *good, *rows, *good]
    with pytest.raises(SchemaMismatch) as caught:
        decode_csv("\n".join(lines).encode("utf-8", "surrogateescape"), SCHEMA, first_row=7)
    facts = caught.value.facts
    place = (
        {"place": "/x", "tags": "/a"}.get(name, "") if "JSON" not in reason and "nested" not in reason else ""
    )
    assert [error["pointer"] for error in facts["errors"]] == [f"/rows/8/{name}{place}"]
    assert reason in facts["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("body", "reason", "facts"),
    [
        (b"", "the body is empty", {}),
        (b"\n1\n", "the first line is empty", {"line": 1}),
        (b"\xff\xfei\x00d\x00", "UTF-16", {"byte": 0}),
        (b"id,n\xffme\n", "the header line is invalid UTF-8", {"line": 1}),
        (b'id,"na"me"\n', "quotation mark", {"line": 1, "byte": 6}),
        (b'id,name\n1,a"b\n', "quotation mark", {"line": 2, "byte": 11}),
        (b'id,name\n1,"a"b\n', "quotation mark", {"line": 2, "byte": 12}),
        (b'id,name\n1,""a\n', "quotation mark", {"line": 2, "byte": 11}),
        (b'id,name\n1,"a\n2,b\n', "never closed", {"line": 2, "byte": 10}),
        (b'id,name\n1,"a""', "never closed", {"line": 2, "byte": 10}),
        (b'id,name\n1,x\n2,"', "never closed", {"line": 3, "byte": 14}),
        (b"id,name\n1,a\rb\n", "carriage return", {"line": 2, "byte": 11}),
        (b"id\r1\r2\r", "carriage return", {"line": 1, "byte": 2}),
        (b"id\n1\r", "carriage return", {"line": 2, "byte": 4}),
    ],
)
def test_malformed_csv_is_named_by_position(body, reason, facts):
    with pytest.raises(MalformedBody) as caught:
        decode_csv(body, SCHEMA)
    assert reason in caught.value.detail
    assert facts.items() <= caught.value.facts.items()


def test_byte_that_is_not_utf8_is_that_of_the_input():
    body = b'id,name\n1,"a"\n2,"b\n' + b"caf\xe9" + b'"\n'
    with pytest.raises(
        SchemaMismatch, match=r"/rows/1/name: .*got invalid UTF-8: .*; send UTF-8 \(at byte 22 of the input\)"
    ):
        decode_csv(body, SCHEMA)
    assert body[22] == 0xE9


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"id,nam\n1,x", 'column 2 of the header line: the schema has no field "nam"; did you mean "name"?'),
        (b"id,Name\n1,x", 'the schema has no field "Name"; it has "name"'),
        (b"id,name,name", 'column 3 of the header line: "name" appears more than once'),
        (b"id,\n1,x", 'column 2 of the header line: the schema has no field ""'),
        (b"name", 'a value is required: "id" is int32 and not nullable'),
    ],
)
def test_invalid_header_is_refused(header, reason):
    with pytest.raises(SchemaMismatch, match=r"^/rows(/0/(nam|Name|))?: ") as caught:
        decode_csv(header + b"\n", SCHEMA)
    assert reason in caught.value.detail


def test_rows_of_another_width_are_named_by_row():
    body = b'id,name\n1,"x\ny"\n\n2\n3,c\n4,d,e\n'
    with pytest.raises(SchemaMismatch) as caught:
        decode_csv(body, SCHEMA)
    assert caught.value.facts["errors"] == [
        {"pointer": "/rows/1", "detail": "line 5: expected 2 cells, as in the header line, got 1"},
        {"pointer": "/rows/3", "detail": "line 7: expected 2 cells, as in the header line, got 3"},
    ]


@pytest.mark.parametrize(
    ("header", "advice"),
    [
        ("# of\u0085today", '; the header line is "# of\\x85today"'),
        ("#" * 100, f'; the header line is "{"#" * 60}…"'),
        ("name", ""),
    ],
)
def test_width_of_rows_below_a_comment_names_the_header_line(header, advice):
    schema = schema_of({header: "string"})
    with pytest.raises(SchemaMismatch) as caught:
        decode_csv(f"{header}\n1,2\n".encode(), schema)
    [error] = caught.value.facts["errors"]
    assert error["detail"] == f"line 2: expected 1 cells, as in the header line, got 2{advice}"


def test_errors_of_several_columns_are_ordered_by_row():
    with pytest.raises(SchemaMismatch) as caught:
        decode_csv(b"flag,id\nx,1\ntrue,y\nz,\n", SCHEMA)
    pointers = [error["pointer"] for error in caught.value.facts["errors"]]
    assert pointers == ["/rows/0/flag", "/rows/1/id", "/rows/2/id", "/rows/2/flag"]


def test_blank_line_is_a_null_only_in_a_single_column():
    assert decode_csv(b"id,name\n\n1,a\n\r\n\n2,b\n\n", SCHEMA)["id"].to_pylist() == [1, 2]
    one = schema_of({"name": "string"})
    assert decode_csv(b'name\na\n\n""\n\n', one)["name"].to_pylist() == ["a", None, "", None]
    assert decode_csv(b"name\n\n\n", one)["name"].to_pylist() == [None, None]


def test_empty_cell_at_the_end_is_null():
    for body in (b'id,name,day\n1,"a",', b'id,name,day\n1,"a",2026-01-01\n2,"b",'):
        assert decode_csv(body, SCHEMA)["day"].to_pylist()[-1] is None


def test_header_without_rows_is_an_empty_table():
    for body in (b"id", b"id,name\r\n", b"\xef\xbb\xbfid\n"):
        assert decode_csv(body, SCHEMA) == SCHEMA.to_arrow().empty_table()


def test_omitted_columns_are_bounded_in_memory():
    wide = schema_of({f"f{number}": "string" for number in range(2000)})
    with pytest.raises(BodyTooLarge):
        decode_csv(b"f0\n" + b"\n" * 10_000, wide)


def cells(table: pa.Table) -> bytes:
    """The table as CSV: cells as its JSON has them, every text quoted, nulls bare."""
    out = io.StringIO()
    names = csv.writer(out)
    names.writerow(table.column_names)
    for row in json.loads(encode_rows_json(table), parse_float=str, parse_int=str):
        written = [text(value, field.type) for value, field in zip(row.values(), table.schema, strict=True)]
        out.write(",".join(written) + "\r\n")
    return out.getvalue().encode()


def text(value: Any, kind: pa.DataType) -> str:
    if value is None:
        return ""
    if pa.types.is_nested(kind):
        value = compact(value, kind)
    elif isinstance(value, bool):
        value = "true" if value else "false"
    return '"' + value.replace('"', '""') + '"'


def compact(value: Any, kind: pa.DataType) -> str:
    """JSON text of a nested value whose numbers were kept as text."""
    if value is None:
        return "null"
    if pa.types.is_map(kind):
        return (
            "{"
            + ",".join(f"{json.dumps(key)}:{compact(item, kind.item_type)}" for key, item in value.items())
            + "}"
        )
    if pa.types.is_list(kind):
        return "[" + ",".join(compact(item, kind.value_type) for item in value) + "]"
    if pa.types.is_struct(kind):
        return "{" + ",".join(f"{json.dumps(f.name)}:{compact(value[f.name], f.type)}" for f in kind) + "}"
    is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return value if is_number else json.dumps(value)


@share(3)
@given(tables())
@settings(max_examples=a_third_of(150), deadline=None)
def test_encoded_csv_decodes_to_the_same_values(sample):
    schema, table = sample
    assert decode_csv(cells(table), schema) == table


TEXTS = st.one_of(
    st.text("0123456789+-.eE", max_size=8),
    st.text("0123456789-T: Z+.", min_size=8, max_size=32),
    st.sampled_from(
        ["true", "false", "nan", "inf", "0x10", "1e400", "-0", "00", "1e-400", "9" * 40, "-" + "9" * 38]
    ),
    st.from_regex(r"\A\d{4}-[01]\d-[0-3]\d\Z"),
    st.from_regex(
        r"\A\d{4}-[01]\d-[0-3]\d[T ][0-2]\d:[0-5]\d:[0-6]\d(\.\d{1,9})?(Z|[+-][0-2]\d(:?[0-5]\d)?)?\Z"
    ),
    st.from_regex(r"\A-?\d{1,20}(\.\d{0,20})?([eE][+-]?\d{1,3})?\Z"),
    st.from_regex(r"\A[A-Za-z0-9+/]{0,8}={0,2}\Z"),
    st.text(max_size=5),
)


@share(3)
@given(TEXTS, scalar_types())
@settings(max_examples=a_third_of(1500), deadline=None)
def test_vectorised_conversion_accepts_only_what_the_exact_one_accepts(text, data_type):
    try:
        fast = data_type.parse(pa.array([text], pa.string()))
    except (ValueError, pa.ArrowInvalid):
        return
    try:
        exact = pa.array([read_text(text, data_type)], to_arrow(data_type))
    except RejectedValue as refused:
        raise AssertionError(f"{text!r} as {data_type} became {fast[0]}") from refused
    assert fast.equals(exact)


def test_error_of_a_row_names_another_separator_of_the_header() -> None:
    with pytest.raises(SchemaMismatch, match="got 2; the header line has a semicolon"):
        decode_csv(b"id;price\n1;2,5\n", schema_of({"id;price": "string"}))
