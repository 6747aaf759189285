"""What the feed and reads give, as input: every form of changes in every format, and rows with meta columns."""

from __future__ import annotations

import datetime as dt
import io
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pytest

from app.kernel.changelog.delivery_forms import ChangeForm, flat, in_form, json_names, symbols_of
from app.kernel.codecs import Format
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.codecs.json.encode import encode_changes_json, encode_rows_json, encode_rows_ndjson
from app.kernel.codecs.meta_on_read import CORRECTED_ON_READ, META_ON_READ
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.codecs.shape_inference import CHANGES_OF_NO_COLUMNS, infer_shapes
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.dataset import DEFAULT_VOCABULARY, Vocabulary
from app.kernel.format.errors import SchemaMismatch
from app.kernel.format.rows.change_schema import change_schema
from app.kernel.format.rows.changelog import OP_COLUMN, Op
from app.kernel.format.schema.schema import Schema
from tests.kernel.codecs.changes import CHANGES, stepwise
from tests.kernel.codecs.samples import arrow_file, arrow_stream, parquet, schema_of
from tests.kernel.format.test_types_on_every_surface import EXAMPLES

TYPES: Final = {f"c{number}": text for number, text in enumerate(EXAMPLES)}
NESTED: Final = {
    "list": "list<decimal(9, 2)>",
    "map": "map<int32, timestamp>",
    "struct": "struct<a: uuid, `b c`: list<binary>>",
}
EVERY_TYPE: Final = schema_of({"id": "int64!", **TYPES, **NESTED})
NAMESAKES: Final = schema_of(
    {
        "id": "int64!",
        "op": "string",
        "version": "int32",
        "_change_type": "string",
        "_commit_version": "date",
    }
)
NAMES: Final = Vocabulary(op="what", offset="at", version="v", event_time="seen")
FORMATS: Final = ("json", "ndjson", "csv", "arrow", "arrow_file", "parquet")
each_format = pytest.mark.parametrize("format_", FORMATS)


def rows_of(schema: Schema) -> pa.Table:
    """Rows with the examples of their types, and one with nulls only."""
    columns = []
    for field in schema.to_arrow():
        text = TYPES.get(field.name)
        values: list[Any] = EXAMPLES[text] if text else [None]
        columns.append(pa.array([values[row % len(values)] for row in range(4)], field.type))
    table = pa.Table.from_arrays(columns, schema=schema.to_arrow())
    ids = pa.array([1, 2, 2, 1], pa.int64())
    table = table.set_column(0, schema.to_arrow().field(0), ids)
    if schema is not EVERY_TYPE:
        return table
    moment = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    nested = {
        "list": [[], None, ["1.50", None], ["0.00"]],
        "map": [[(1, moment)], None, [], [(-2, None), (3, moment)]],
        "struct": [{"a": b"0123456789abcdef", "b c": [b"\xff"]}, None, {"a": None, "b c": []}, None],
    }
    for name, values in nested.items():
        kind = schema.to_arrow().field(name).type
        if name == "list":
            values = [
                None
                if each is None
                else [
                    None if text is None else pa.scalar(text).cast(kind.value_type).as_py() for text in each
                ]
                for each in values
            ]
        table = table.set_column(
            schema.names().index(name), schema.to_arrow().field(name), pa.array(values, kind)
        )
    return table


def changes_of(schema: Schema) -> pa.Table:
    """A feed: two rows are added, one of them is changed, the other one removed."""
    rows = rows_of(schema)
    places, ops = [0, 1, 1, 2, 3], [Op.APPEND, Op.APPEND, Op.CORRECT_FROM, Op.CORRECT_TO, Op.RETRACT]
    taken = rows.take(pa.array(places)).combine_chunks()
    count = len(places)
    return pa.table(
        {
            "offset": pa.array(range(count), pa.int64()),
            "op": pa.array(ops, pa.uint8()),
            "version": pa.array([1, 1, 2, 2, 3], pa.int64()),
            "system_time": pa.array([1_700_000_000_000] * count, pa.timestamp("ms", tz="UTC")),
            "event_time": pa.nulls(count, pa.timestamp("us", tz="UTC")),
            "row": pa.StructArray.from_arrays([c.combine_chunks() for c in taken.columns], schema.names()),
            "corrects_offset": pa.array([None, None, 1, None, 0], pa.int64()),
        }
    )


def written(form: ChangeForm, format_: str, schema: Schema, vocabulary: Vocabulary) -> tuple[Format, bytes]:
    """A feed as pages and exports write it."""
    events = in_form(changes_of(schema), form, "d").table
    if format_ in ("json", "ndjson"):
        as_ndjson = format_ == "ndjson"
        names = json_names(form, vocabulary)
        text = encode_changes_json(events, as_ndjson=as_ndjson, symbols=symbols_of(form), names=names)
        return (Format.NDJSON if as_ndjson else Format.JSON_ROWS), text
    table = flat(events, form, vocabulary)
    if format_ == "csv":
        name = next((name for name in table.column_names if name in ("_hw_op", vocabulary.op)), None)
        if name is not None and table.schema.field(name).type == pa.uint8():
            symbols = pa.array(symbols_of(form)).take(table.column(name).combine_chunks())
            table = table.set_column(table.column_names.index(name), name, symbols)
    return as_format(format_, table)


def as_format(format_: str, table: pa.Table) -> tuple[Format, bytes]:
    match format_:
        case "json":
            return Format.JSON_ROWS, encode_rows_json(table)
        case "ndjson":
            return Format.NDJSON, encode_rows_ndjson(table)
        case "csv":
            return Format.CSV, csv_header(table.schema) + encode_csv(table)
        case "arrow":
            return Format.ARROW, arrow_stream(table, max_chunksize=2)
        case "parquet":
            return Format.PARQUET, parquet(table, row_group_size=2)
    return Format.ARROW, arrow_file(table, max_chunksize=2)


EXPECTED: Final[dict[ChangeForm, tuple[list[int], list[int]]]] = {
    **dict.fromkeys(ChangeForm, ([0, 0, 2, 3, 1], [0, 1, 1, 2, 3])),
    ChangeForm.RETRACT: ([0, 0, 1, 0, 1], [0, 1, 1, 2, 3]),
    ChangeForm.UPSERT: ([0, 0, 0, 1], [0, 1, 2, 3]),
}


@each_format
@pytest.mark.parametrize("form", ChangeForm)
@pytest.mark.parametrize("vocabulary", [DEFAULT_VOCABULARY, NAMES], ids=["standard", "renamed"])
@pytest.mark.parametrize("schema", [EVERY_TYPE, NAMESAKES], ids=["types", "namesakes"])
def test_feed_in_every_form_and_format_is_read_unchanged(
    schema: Schema, vocabulary: Vocabulary, form: ChangeForm, format_: str
) -> None:
    reader, data = written(form, format_, schema, vocabulary)
    ops, places = EXPECTED[form]
    # The dataset that is written to has its own names, and reads the standard ones as well.
    for own in {vocabulary, NAMES}:
        found = stepwise(reader, data, change_schema(schema, ["id"], own))
        assert found[OP_COLUMN].to_pylist() == ops
        expected = rows_of(schema).take(pa.array(places))
        for name in schema.names():
            assert found[name].to_pylist() == expected[name].to_pylist(), name


@each_format
def test_rows_with_meta_columns_are_read_as_rows(format_: str) -> None:
    rows = rows_of(EVERY_TYPE)
    table = rows
    for field in (*META_ON_READ, *CORRECTED_ON_READ):
        table = table.append_column(
            field,
            pa.array(["x"] * 4).cast(field.type) if field.type == pa.string() else pa.nulls(4, field.type),
        )
    found = stepwise(*as_format(format_, table), EVERY_TYPE)
    assert found.to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("name", ["_hw_other", "_hw_"])
@each_format
def test_other_names_with_the_prefix_are_unknown(format_: str, name: str) -> None:
    table = pa.table({"id": pa.array([1], pa.int64()), "name": ["x"], name: ["y"]})
    schema = schema_of({"id": "int64!", "name": "string"})
    with pytest.raises(SchemaMismatch, match="the schema has no field"):
        stepwise(*as_format(format_, table), schema)


def test_repeated_member_beside_meta_columns_is_refused() -> None:
    schema = schema_of({"id": "int64!"})
    with pytest.raises(SchemaMismatch):
        stepwise(Format.NDJSON, b'{"id":1,"_hw_file_name":"a","id":2}\n', schema)
    with pytest.raises(SchemaMismatch):
        stepwise(Format.NDJSON, b'{"id":1,"_hw_file_name":"a","_hw_file_name":"b"}\n', schema)


def test_system_name_beside_its_prefixed_name_is_unknown() -> None:
    """The dataset of the feed has a column `version`, this one has none."""
    table = pa.table({"op": ["+A"], "_hw_version": [3], "version": [1], "id": [1], "name": ["x"]})
    with pytest.raises(SchemaMismatch, match='no field "version"'):
        stepwise(Format.ARROW, arrow_stream(table))


def envelope(op: str, before: Any, after: Any) -> pa.Table:
    row = pa.struct([("id", pa.int64()), ("name", pa.string())])
    return pa.table(
        {"op": [op], "before": pa.array([before], row), "after": pa.array([after], row), "ts_ms": [7]}
    )


X: Final = {"id": 1, "name": "x"}


@pytest.mark.parametrize(
    ("table", "pointer", "words"),
    [
        (envelope("c", X, X), "/before", 'expected null in an envelope of op "c"'),
        (envelope("d", X, X), "/after", 'expected null in an envelope of op "d"'),
        (envelope("d", None, None), "/before", 'expected a row in an envelope of op "d"'),
        (envelope("u", X, None), "/after", 'expected a row in an envelope of op "u"'),
        (envelope("x", None, X), "/op", "expected Debezium's c, r, u or d, got 'x'"),
        (envelope("u", {"id": None, "name": "x"}, X), "/before/id", "got null"),
        (envelope("c", None, {"id": 1, "name": None}), "/after/name", "got null"),
        (
            pa.table({"op": [0], "before": pa.array([X]), "id": [1], "name": ["x"]}),
            "/before",
            'expected null unless the op is "U"',
        ),
        (pa.table({"_change_type": ["+A"], "id": [1], "name": ["x"]}), "/_change_type", "expected insert"),
    ],
)
def test_fault_of_an_event_names_its_position(table: pa.Table, pointer: str, words: str) -> None:
    records: list[BadRecord] = []
    for format_ in ("arrow", "parquet", "csv"):
        reader, data = as_format(format_, table)
        with pytest.raises(SchemaMismatch) as caught:
            stepwise(reader, data)
        errors = caught.value.facts["errors"]
        assert [error["pointer"] for error in errors] == [f"/rows/0{pointer}"]
        assert words in errors[0]["detail"]
        with_bad = BadRecords(write=records.extend)
        assert list(iter_tables(reader, io.BytesIO(data), CHANGES, bad_records=with_bad)) == []
        with_bad.close()
    assert len(records) == 3


def test_bad_event_is_kept_as_a_record_that_is_read_again() -> None:
    """Both changes of an update stay together: the record is repaired as a whole."""
    table = envelope("u", X, {"id": 1, "name": None})
    records: list[BadRecord] = []
    bad_records = BadRecords(write=records.extend)
    data = arrow_stream(table)
    assert list(iter_tables(Format.ARROW, io.BytesIO(data), CHANGES, bad_records=bad_records)) == []
    bad_records.close()
    [record] = records
    repaired = msgspec.json.decode(record.payload)
    assert repaired["op"] == "u"
    repaired["after"]["name"] = "y"
    found = stepwise(Format.NDJSON, msgspec.json.encode(repaired))
    assert found.select([OP_COLUMN, "id", "name"]).to_pylist() == [
        {OP_COLUMN: 2, "id": 1, "name": "x"},
        {OP_COLUMN: 3, "id": 1, "name": "y"},
    ]


@pytest.mark.parametrize("form", ChangeForm)
@each_format
def test_columns_of_a_new_dataset_are_those_of_the_rows(form: ChangeForm, format_: str) -> None:
    schema = schema_of({"id": "int64!", "name": "string", "at": "date"})
    if format_ == "csv" and form is ChangeForm.DEBEZIUM:
        # Its structs are texts, of which no columns are inferred.
        return
    reader, data = written(form, format_, schema, DEFAULT_VOCABULARY)
    shapes = infer_shapes(reader, io.BytesIO(data), Split(), schema=CHANGES_OF_NO_COLUMNS)
    assert list(shapes) == ["id", "name", "at"]


def test_column_like_a_system_column_is_one_of_a_new_dataset_unless_the_input_is_a_feed() -> None:
    def names(text: bytes) -> list[str]:
        found = infer_shapes(Format.CSV, io.BytesIO(text), Split(), schema=CHANGES_OF_NO_COLUMNS)
        return list(found)

    assert names(b"op,id,version\n+A,1,2\n") == ["id", "version"]
    assert names(b"offset,op,version,id\n0,+A,1,2\n") == ["id"]


MORE: Final[dict[str, Callable[[], bytes]]] = {
    "codes": lambda: (
        b'{"op":0,"row":{"id":1,"name":"x"}}\n{"op":2,"row":{"id":1}}\n{"op":3,"row":{"id":1,"name":"y"}}\n'
    ),
    "symbols": lambda: (
        b'{"op":"+A","row":{"id":1,"name":"x"}}\n{"op":"U","before":{"id":1},"row":{"id":1,"name":"y"}}\n'
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_op_is_a_symbol_or_a_code(name: str) -> None:
    found = stepwise(Format.NDJSON, MORE[name]())
    assert found[OP_COLUMN].to_pylist() == [0, 2, 3]
