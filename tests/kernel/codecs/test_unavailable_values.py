"""Values that Debezium has not read are never stored: an update keeps the stored value, or is refused."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pytest

from app.kernel.codecs import Format, Split, iter_tables
from app.kernel.codecs.compiled import compile_schema
from app.kernel.codecs.faults import Faults
from app.kernel.codecs.json.row_reader import RowReader
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.value_parser import parse_json, read_value
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.operation import Operation, input_schema
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.rows.kept_fields import KEPT_COLUMN
from tests.kernel.codecs.changes import ndjson, op_rows, stepwise
from tests.kernel.codecs.samples import schema_of
from tests.kernel.codecs.test_feed_as_input import as_format

P: Final = "__debezium_unavailable_value"
BASE64: Final = base64.b64encode(P.encode()).decode()
COLUMNS: Final = {
    "text": ("string", P, "old"),
    "json": ("string", json.dumps({P: P}, separators=(",", ":")), "{}"),
    "octets": ("binary", BASE64, "AP8="),
    "texts": ("list<string>", [P], ["a", None]),
    "blobs": ("list<binary>", [BASE64], ["AP8="]),
    "numbers": ("list<int32>", list(P.encode()), [1, 2]),
    "longs": ("list<int64>", list(P.encode()), []),
    "map": ("map<string, string>", {P: P}, {"k": "v"}),
}
FIELDS: Final = {name: kind for name, (kind, _, _) in COLUMNS.items()}
SCHEMA: Final = change_schema(schema_of({"id": "int64!", **FIELDS}), ["id"])
"""Changes of which none can keep a value."""
_TYPES: Final = {"id": "int64", "part": "string", "at": "int64", **FIELDS}
_REGISTRATION: Final[dict[str, Any]] = {
    "name": "t",
    "schema": {"fields": [{"name": name, "type": kind} for name, kind in _TYPES.items()]},
    "record_key": ["id", "part"],
    "partition_by": ["part"],
    "ordering_field": "at",
}


def changes_of(**members: Any) -> Any:
    """The schema of changes of a dataset."""
    registration = {**_REGISTRATION, **members}
    return input_schema(Operation.CHANGELOG, define_dataset(msgspec.convert(registration, CreateDataset)))


def table(*records: Any, schema: Any) -> pa.Table:
    text = b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
    [found] = iter_tables(Format.NDJSON, io.BytesIO(text), schema, split=Split())
    return found


def stepwise_keeping(form: Format, data: bytes, schema: Any) -> pa.Table:
    """The changes in a body, with what they keep."""
    return pa.concat_tables(
        iter_tables(form, io.BytesIO(data), schema, split=Split()), promote_options="default"
    )


def read(*records: Any, schema: Any = SCHEMA) -> list[tuple[str, dict[str, Any]]]:
    """The changes, from compact JSON as Debezium writes it."""
    text = b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)
    return op_rows(stepwise(Format.NDJSON, text, schema))


@pytest.mark.parametrize("name", FIELDS)
def test_update_has_the_value_of_the_row_before_it(name: str) -> None:
    _, placeholder, old = COLUMNS[name]
    before, after = {"id": 1, name: old}, {"id": 1, name: placeholder}
    expected = read({"op": "u", "before": before, "after": before})
    assert read({"op": "u", "before": before, "after": after}) == expected
    wrapped = {"schema": {}, "payload": {"op": "u", "before": before, "after": after}}
    assert read(wrapped) == expected


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("before", [None, "placeholder", "absent"])
def test_update_without_the_value_is_refused(name: str, before: str | None) -> None:
    placeholder = COLUMNS[name][1]
    old = {None: None, "placeholder": {"id": 1, name: placeholder}, "absent": {"id": 1}}[before]
    with pytest.raises(SchemaMismatch) as caught:
        read(
            {"op": "c", "before": None, "after": {"id": 2}},
            {"op": "u", "before": old, "after": {"id": 1, name: placeholder}},
        )
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == f"/rows/1/after/{name}"
    assert "REPLICA IDENTITY FULL" in error["detail"]


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize("before", [None, "placeholder", "absent"])
def test_update_without_the_value_keeps_the_stored_one(name: str, before: str | None) -> None:
    placeholder, schema = COLUMNS[name][1], changes_of()
    own = {"id": 1, "part": "a", "at": 7}
    old = {None: None, "placeholder": {**own, name: placeholder}, "absent": own}[before]
    found = table(
        {"op": "c", "before": None, "after": own},
        {"op": "u", "before": old, "after": {**own, name: placeholder}},
        schema=schema,
    )
    # What is known of the row before is no whole row to take back.
    assert found.column(OP_COLUMN).to_pylist() == [Op.APPEND, Op.CORRECT_TO]
    [field] = [field for field in schema.fields if field.name == name]
    assert found.column(KEPT_COLUMN).to_pylist() == [None, str(field.id)]
    assert found.column(name).to_pylist() == [None, None]


def _escaped(text: str) -> str:
    """JSON text with the first letter of each string of letters escaped, as encoders may do it."""
    return re.sub(r'"([_A-Za-z0-9])', lambda found: f'"\\u{ord(found[1]):04x}', text)


@pytest.mark.parametrize("name", FIELDS)
@pytest.mark.parametrize(
    "spelled",
    [
        json.dumps,
        lambda record: json.dumps(record).replace("[", "[ ").replace(",", "\t , ").replace("]", " ]"),
        lambda record: _escaped(json.dumps(record)),
        lambda record: json.dumps(record).replace("=", "\\u003d"),
        lambda record: json.dumps(record).replace("_", "\\u005F"),
    ],
    ids=["spaces", "tabs", "escapes", "escaped signs", "large escapes"],
)
def test_placeholder_is_found_in_every_spelling(name: str, spelled: Callable[[Any], str]) -> None:
    schema, own = changes_of(), {"id": 1, "part": "a"}
    record = {"op": "u", "before": None, "after": {**own, name: COLUMNS[name][1]}}
    found = stepwise_keeping(Format.NDJSON, spelled(record).encode() + b"\n", schema)
    assert found.column(name).to_pylist() == [None]
    assert found.column(KEPT_COLUMN).to_pylist() == [str(schema.field(name).id)]


@pytest.mark.parametrize("name", FIELDS)
def test_null_before_an_update_is_no_value(name: str) -> None:
    own, schema = {"id": 1, "part": "a"}, changes_of()
    record = {"op": "u", "before": {**own, name: None}, "after": {**own, name: COLUMNS[name][1]}}
    found = table(record, schema=schema)
    assert found.column(OP_COLUMN).to_pylist() == [Op.CORRECT_TO]
    assert found.column(KEPT_COLUMN).to_pylist() == [str(schema.field(name).id)]


FLAT_FORMS: Final = ("csv", "arrow", "parquet")


def flat(format_: str, records: list[dict[str, Any]], schema: Any, **columns: Any) -> tuple[Format, bytes]:
    """Envelopes of full rows as columns."""
    fields = [field for field in schema.to_arrow() if field.name != OP_COLUMN]
    rows = {}
    for name in ("before", "after"):
        structs = [record.get(name) for record in records]
        if format_ == "csv":
            rows[name] = pa.array(
                [None if each is None else json.dumps(each) for each in structs], pa.string()
            )
            continue
        present = [each or {} for each in structs]
        values = pa.Table.from_arrays(
            [RowReader(schema.rows()).table(decoded(present, schema)).column(field.name) for field in fields],
            schema=pa.schema([field.with_nullable(True) for field in fields]),
        )
        rows[name] = pa.StructArray.from_arrays(
            [column.combine_chunks() for column in values.columns],
            fields=list(values.schema),
            mask=pa.array([each is None for each in structs]),
        )
    return as_format(format_, pa.table({"op": [record["op"] for record in records], **rows, **columns}))


def decoded(rows: list[dict[str, Any]], schema: Any) -> list[dict[str, Any]]:
    """The Python values of rows of JSON."""
    types = compile_schema(schema.rows()).types
    return [
        {
            name: read_value(parse_json(json.dumps(value)), types[name], "", Faults())
            for name, value in row.items()
        }
        for row in rows
    ]


def outcome(format_: Format, data: bytes, schema: Any) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """The changes, and the faults of bad records."""
    records: list[BadRecord] = []
    bad_records = BadRecords(write=records.extend)
    tables = list(iter_tables(format_, io.BytesIO(data), schema, bad_records=bad_records))
    bad_records.close()
    found = [row for each in tables for row in each.to_pylist()]
    faults = [(error.pointer, error.detail) for record in records for error in record.errors]
    return [{name: value for name, value in row.items() if value is not None} for row in found], faults


@pytest.mark.parametrize("keeping", [True, False])
@pytest.mark.parametrize("format_", FLAT_FORMS)
@pytest.mark.parametrize("name", FIELDS)
def test_columns_are_read_as_json_is(name: str, format_: str, keeping: bool) -> None:
    _, placeholder, old = COLUMNS[name]
    schema = changes_of() if keeping else SCHEMA
    own = {"id": 1, "part": "a", "at": 1} if keeping else {"id": 1}
    moved = {**own, "id": 2}
    rows = [{**own, name: value} for value in (placeholder, old, None)]
    records = [
        {"op": "u", "before": before, "after": {**after, name: value}}
        for before in (None, *rows)
        for after in (own, moved)
        for value in (placeholder, old)
    ]
    records += [{"op": op, "before": None, "after": row} for op in "cr" for row in rows]
    records += [{"op": "d", "before": row, "after": None} for row in rows]
    records.append({"op": "m", "before": None, "after": None})
    expected = outcome(Format.NDJSON, ndjson(*records), schema)
    assert outcome(*flat(format_, records, schema), schema) == expected
    assert P not in str(expected)


STRUCTS: Final = {
    "struct": ({"a": 1, "b": P}, "/struct/b"),
    "deep": ({"c": {"d": [P]}}, "/deep/c/d"),
    "many": ([{"e": "x"}, {"e": P}], "/many/1/e"),
    "named": ({"k/l": {"f": BASE64}}, "/named/k~1l/f"),
}
STRUCT_SCHEMA: Final = change_schema(
    schema_of(
        {
            "id": "int64!",
            "struct": "struct<a: int32, b: string>",
            "deep": "struct<c: struct<d: list<string>>>",
            "many": "list<struct<e: string>>",
            "named": "map<string, struct<f: binary>>",
        }
    ),
    ["id"],
)


@pytest.mark.parametrize("op", ["u", "c"])
@pytest.mark.parametrize("name", STRUCTS)
def test_part_of_a_struct_is_refused(name: str, op: str) -> None:
    value, pointer = STRUCTS[name]
    with pytest.raises(SchemaMismatch) as caught:
        read({"op": op, "before": None, "after": {"id": 1, name: value}}, schema=STRUCT_SCHEMA)
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == f"/rows/0/after{pointer}"
    assert "a part cannot be kept" in error["detail"]


@pytest.mark.parametrize("name", STRUCTS)
def test_deleted_row_may_lack_a_part_of_a_struct(name: str) -> None:
    row = {"id": 1, name: STRUCTS[name][0]}
    assert read({"op": "d", "before": row, "after": None}, schema=STRUCT_SCHEMA) == [("-R", {"id": 1})]


@pytest.mark.parametrize("format_", FLAT_FORMS)
@pytest.mark.parametrize("name", STRUCTS)
def test_part_of_a_struct_is_refused_in_columns(name: str, format_: str) -> None:
    row = {"id": 1, name: STRUCTS[name][0]}
    records: list[dict[str, Any]] = [
        {"op": "c", "before": None, "after": {"id": 2}},
        {"op": "u", "before": None, "after": row},
        {"op": "d", "before": row, "after": None},
    ]
    expected = outcome(Format.NDJSON, ndjson(*records), STRUCT_SCHEMA)
    assert outcome(*flat(format_, records, STRUCT_SCHEMA), STRUCT_SCHEMA) == expected
    assert expected[1]


@pytest.mark.parametrize("format_", FLAT_FORMS)
def test_truncation_is_refused_in_columns(format_: str) -> None:
    records: list[dict[str, Any]] = [
        {"op": "t", "before": None, "after": None},
        {"op": "c", "before": None, "after": {"id": 1}},
    ]
    expected = outcome(Format.NDJSON, ndjson(*records), SCHEMA)
    assert outcome(*flat(format_, records, SCHEMA), SCHEMA) == expected
    assert expected[1]


def test_struct_as_a_whole_is_that_of_the_row_before_it() -> None:
    before, after = {"id": 1, "struct": {"a": 1, "b": "x"}}, {"id": 1, "struct": P}
    expected = read({"op": "u", "before": before, "after": before}, schema=STRUCT_SCHEMA)
    assert read({"op": "u", "before": before, "after": after}, schema=STRUCT_SCHEMA) == expected


def test_update_keeps_only_what_the_row_before_it_lacks() -> None:
    own, schema = {"id": 1, "part": "a"}, changes_of()
    after = {**own, "text": P, "octets": BASE64}
    found = table({"op": "u", "before": {**own, "text": "old"}, "after": after}, schema=schema)
    [field] = [field for field in schema.fields if field.name == "octets"]
    assert found.column(KEPT_COLUMN).to_pylist() == [str(field.id)]
    assert found.column("text").to_pylist() == ["old"]


def test_rows_that_keep_nothing_have_no_column_for_it() -> None:
    own = {"id": 1, "part": "a", "text": P}
    found = table({"op": "c", "before": None, "after": own}, schema=changes_of())
    assert KEPT_COLUMN not in found.column_names


_GROUPS: Final = {"merge_mode": "partial", "sequence_groups": [{"ordering_field": "at", "fields": ["text"]}]}
_REQUIRED: Final = {
    "fields": [{"name": "id", "type": "int64"}, {"name": "text", "type": "string", "nullable": False}]
}
REFUSING: Final[dict[str, dict[str, Any]]] = {
    "a feed of rows as they were sent": {"changelog": {"producer": "input"}},
    "no key": {"record_key": [], "ordering_field": None, "partition_by": []},
    "a part of the key": {"record_key": ["id", "text"], "partition_by": []},
    "a partition": {"record_key": ["id", "text"], "partition_by": ["text"]},
    "the ordering field": {"ordering_field": "text"},
    "a sequence group": {**_GROUPS, "ordering_field": None},
    "required": {"schema": _REQUIRED, "record_key": ["id"], "partition_by": [], "ordering_field": None},
}


@pytest.mark.parametrize("reason", REFUSING)
def test_value_that_cannot_be_kept_is_refused(reason: str) -> None:
    schema = changes_of(**REFUSING[reason])
    own = {name: value for name, value in {"id": 1, "part": "a"}.items() if name in schema.names()}
    with pytest.raises(SchemaMismatch) as caught:
        table({"op": "u", "before": None, "after": {**own, "text": P}}, schema=schema)
    [error] = caught.value.facts["errors"]
    assert error["pointer"] == "/rows/0/after/text"
    assert "REPLICA IDENTITY FULL" in error["detail"]


def test_update_of_another_key_cannot_keep_a_value() -> None:
    before, after = {"id": 1, "part": "a"}, {"id": 2, "part": "a", "text": P}
    with pytest.raises(SchemaMismatch, match="REPLICA IDENTITY FULL"):
        table({"op": "u", "before": before, "after": after}, schema=changes_of())


@pytest.mark.parametrize("name", FIELDS)
def test_new_and_deleted_rows_have_null(name: str) -> None:
    row = {"id": 1, name: COLUMNS[name][1]}
    assert read({"op": "r", "before": None, "after": row}) == [("+A", {"id": 1})]
    assert read({"op": "d", "before": row, "after": None}) == [("-R", {"id": 1})]


def test_required_column_of_a_new_row_is_named() -> None:
    schema = change_schema(schema_of({"id": "int64!", "text": "string!"}), ["id"])
    with pytest.raises(SchemaMismatch, match='"text"'):
        read({"op": "c", "before": None, "after": {"id": 1, "text": P}}, schema=schema)


def test_text_is_stored_outside_of_envelopes() -> None:
    [(_, row)] = op_rows(stepwise(Format.NDJSON, ndjson({"op": "+A", "row": {"id": 1, "text": P}}), SCHEMA))
    assert row["text"] == P


def test_longer_text_with_the_placeholder_is_stored() -> None:
    [(_, row)] = read({"op": "c", "before": None, "after": {"id": 1, "text": P + "s"}})
    assert row["text"] == P + "s"


def test_uuids_are_those_that_java_makes_of_the_text() -> None:
    # java.util.UUID.nameUUIDFromBytes("__debezium_unavailable_value".getBytes())
    schema = change_schema(schema_of({"id": "int64!", "ids": "list<uuid>", "texts": "list<string>"}), ["id"])
    for name in ("ids", "texts"):
        row = {"id": 1, name: ["b68a35a7-17ad-35b3-af2a-ae46edb4545a"]}
        assert read({"op": "r", "before": None, "after": row}, schema=schema) == [("+A", {"id": 1})]
