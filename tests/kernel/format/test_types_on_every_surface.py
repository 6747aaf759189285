"""Each type on each surface: what is written is read as the same value, and what compares keeps its order.

`EXAMPLES` has values of each type, ascending. A type without examples fails, and so does one that a surface lacks.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
import json
import uuid
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from app.kernel.codecs import conform
from app.kernel.codecs.arrow.arrow_casts import cast_lossless
from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.codecs.json.encode import encode_rows_json, encode_rows_ndjson
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.codecs.json.objects import to_objects
from app.kernel.codecs.messages.avro_output import avro_schema, avro_values
from app.kernel.codecs.messages.avro_schema import AvroSchema
from app.kernel.codecs.messages.records import json_line
from app.kernel.codecs.shape_inference import infer_shapes
from app.kernel.codecs.splits import Split
from app.kernel.codecs.value_parser import read_text
from app.kernel.format.definition.hive_table import hive_type
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import comparable_bound, stored_bound
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.key_order import key_order
from app.kernel.format.rows.record_key import canonical_bytes, encode_keys
from app.kernel.format.rows.row_sizes import row_bytes
from app.kernel.format.schema.types import (
    PLAIN_TYPES,
    FlatType,
    JsonForm,
    annotated,
    parse_type,
    stored_type,
)
from app.kernel.format.schema.widening import why_not_wider
from app.kernel.sql.conditions.equality import equality
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match
from app.kernel.sql.queries.relation_types import relation_type, spark_type
from tests.kernel.codecs.samples import arrow_stream, parquet, schema_of

UTC = dt.UTC
moment = dt.datetime.fromisoformat
EXAMPLES: Final[dict[str, list[Any]]] = {
    "boolean": [False, True],
    "int8": [-128, -1, 0, 127],
    "int16": [-(2**15), 0, 2**15 - 1],
    "int32": [-(2**31), 0, 2**31 - 1],
    "int64": [-(2**63), 0, 2**53 + 1, 2**63 - 1],
    "uint8": [0, 1, 255],
    "uint16": [0, 2**16 - 1],
    "uint32": [0, 2**32 - 1],
    "float": [-3.25, 0.0, 0.5, 16_777_216.0],
    "double": [-1e300, 0.0, 0.1, 1e16],
    "string": ["", "10", "9", "a,\"b'", "zoë"],
    "binary": [b"", b"\x00", b"\x00\xff", b"a" * 20],
    "date": [dt.date(1, 1, 1), dt.date(1969, 12, 31), dt.date(2026, 11, 21), dt.date(9999, 12, 31)],
    "decimal(9, 2)": [decimal.Decimal(text) for text in ("-9999999.99", "0.00", "2.40")],
    "decimal(38, 10)": [
        decimal.Decimal(text) for text in ("-1.0000000001", "0.0000000001", "12345.5000000000")
    ],
    "uuid": [
        uuid.UUID(text).bytes
        for text in (
            "00000000-0000-0000-0000-000000000000",
            "0190163d-8694-739b-aea5-966c26f8ad91",
            "7fffffff-ffff-ffff-ffff-ffffffffffff",
            "ffffffff-ffff-ffff-ffff-ffffffffffff",
        )
    ],
    "timestamp": [
        dt.datetime(1, 1, 1, tzinfo=UTC),
        dt.datetime(2026, 11, 21, 10, tzinfo=UTC),
        dt.datetime(2026, 11, 21, 10, 0, 0, 250, tzinfo=UTC),
    ],
    "timestamp(ms)": [
        dt.datetime(1969, 12, 31, 23, tzinfo=UTC),
        dt.datetime(2026, 11, 21, 10, 0, 0, 250_000, tzinfo=UTC),
    ],
    "timestamp_ntz": [moment("2026-11-21"), moment("2026-11-21T10:00:00.000001")],
    "timestamp_ntz(ms)": [moment("2026-11-21"), moment("2026-11-21T10:00:00.001")],
}
every_type = pytest.mark.parametrize("text", EXAMPLES)
keys = pytest.mark.parametrize("text", [text for text in EXAMPLES if parse_type(text).may_be_key])


def flat(text: str) -> FlatType:
    found = parse_type(text)
    assert isinstance(found, FlatType)
    return found


def table(text: str, *, nulls: bool = True) -> pa.Table:
    """The examples in column `x`, with a null behind them, and in a list, a map and a struct."""
    values = [*EXAMPLES[text], *([None] if nulls else [])]
    column = pa.array(values, flat(text).arrow)
    schema = schema_of(
        {"x": text, "l": f"list<{text}>", "m": f"map<string, {text}>", "s": f"struct<a: {text}>"}
    )
    rows = [{"l": [value, None], "m": [("k", value)], "s": {"a": value}} for value in column.to_pylist()]
    nested = pa.Table.from_pylist(rows, schema=schema.select(["l", "m", "s"]).to_arrow())
    return pa.Table.from_arrays([column, *nested.columns], schema=schema.to_arrow())


def schema(text: str) -> Any:
    return schema_of(
        {"x": text, "l": f"list<{text}>", "m": f"map<string, {text}>", "s": f"struct<a: {text}>"}
    )


def test_every_type_has_examples() -> None:
    assert {str(each) for each in PLAIN_TYPES} <= EXAMPLES.keys()


@every_type
def test_json_and_csv_are_read_as_they_were_written(text: str) -> None:
    rows = table(text)
    assert decode_json_rows(encode_rows_json(rows), schema(text)).equals(rows)
    assert decode_ndjson(encode_rows_ndjson(rows), schema(text)).equals(rows)
    assert decode_csv(csv_header(rows.schema) + encode_csv(rows), schema(text)).equals(rows)
    objects = [to_objects(column.combine_chunks()) for column in rows.columns]
    assert json.loads(encode_rows_json(rows)) == [
        dict(zip(rows.column_names, row, strict=True)) for row in zip(*objects, strict=True)
    ]


@every_type
def test_arrow_and_parquet_are_read_as_they_were_written(text: str) -> None:
    rows = table(text)
    sent = rows.cast(annotated(rows.schema))
    for form, body in ((Format.ARROW, arrow_stream(sent)), (Format.PARQUET, parquet(sent))):
        source = (
            pa.ipc.open_stream(body).read_all() if form is Format.ARROW else pq.read_table(io.BytesIO(body))
        )
        assert conform(source, schema(text)).equals(rows)
        shapes = infer_shapes(form, io.BytesIO(body), Split())
        assert inferred_types({"x": shapes["x"]}) == {"x": text}
    for kind in flat(text).arrow_forms:
        assert flat(text).accepts(kind)
        assert stored_type(flat(text).arrow) == flat(text)


@every_type
def test_avro_is_read_as_it_was_written(text: str) -> None:
    rows = table(text)
    column = rows.column("x").combine_chunks()
    struct = pa.StructArray.from_arrays([column], ["x"])
    writer = avro_schema(struct.type, "shop.Row")
    reader = AvroSchema(writer)
    lines = b"\n".join(json_line(reader.decode(each)) for each in avro_values(struct, writer))
    assert reader.members is not None
    found = decode_ndjson(lines, schema_of({"x": reader.members["x"].type}))
    assert cast_lossless(found.column("x").combine_chunks(), flat(text)).equals(column)


@every_type
def test_texts_are_parsed_alike_at_once_and_one_by_one(text: str) -> None:
    column = pa.array(EXAMPLES[text], flat(text).arrow)
    texts = pc.cast(flat(text).texts(column), pa.string())
    assert flat(text).parse(texts).equals(column)
    assert pa.array([read_text(each, flat(text)) for each in texts.to_pylist()], column.type).equals(column)


@keys
def test_keys_differ_and_partitions_and_map_keys_are_read_back(text: str) -> None:
    rows = table(text, nulls=False)
    assert len(set(encode_keys(rows, ["x"]).to_pylist())) == rows.num_rows
    assert len(set(encode_keys(rows, ["x", "x"]).to_pylist())) == rows.num_rows
    _, paths = partition_codes(rows, ["x", "bucket(4, x)"])
    for number, path in enumerate(paths):
        bounds = partition_statistics(path.split("/")[0], ["x"], schema(text))["1"]
        value = rows.column("x")[number].as_py()
        assert bounds == ColumnStatistics(
            minimum=stored_bound(value, flat(text)), maximum=stored_bound(value, flat(text)), null_count=0
        )
    by = schema_of({"m": f"map<{text}, int32>"})
    maps = pa.table(
        {"m": pa.array([[(value, 1)] for value in EXAMPLES[text]], by.to_arrow().field("m").type)}
    )
    maps = maps.cast(by.to_arrow())
    assert decode_ndjson(encode_rows_ndjson(maps), by).equals(maps)


@every_type
def test_order_of_rows_bounds_and_filters_is_that_of_the_values(text: str) -> None:
    rows = table(text, nulls=False)
    if flat(text).may_be_key:
        backwards = rows.take(list(range(rows.num_rows))[::-1])
        assert key_order(backwards, ["x"]).tolist() == list(range(rows.num_rows))[::-1]
    values = rows.column("x").to_pylist()
    bounds = [comparable_bound(stored_bound(value, flat(text)), flat(text)) for value in values]
    assert None not in bounds
    assert bounds == sorted(bounds)
    assert len(set(bounds)) == len(bounds)
    for number, value in enumerate(values):
        where = parse_filter(equality([(("x",), flat(text).arrow, value)]), schema(text))
        assert np.flatnonzero(matches(where, rows)).tolist() == [number]
        for other, bound in enumerate(values):
            stored = ColumnStatistics(
                minimum=stored_bound(bound, flat(text)), maximum=stored_bound(bound, flat(text)), null_count=0
            )
            assert may_match(where, {"1": stored}, schema(text), 1) == (other == number)


@every_type
def test_wider_types_hold_all_values(text: str) -> None:
    column = pa.array(EXAMPLES[text], flat(text).arrow)
    for wider in flat(text).wider:
        assert why_not_wider(flat(text), wider, explicit_cast=False) is None
        assert column.cast(wider.arrow).cast(column.type).equals(column)
    assert flat(text).widening


@every_type
def test_hive_and_spark_have_a_type(text: str) -> None:
    hive = {"boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "string", "binary", "date"}
    assert hive_type(flat(text)).partition("(")[0] in hive | {"decimal", "timestamp"}
    relation = relation_type(flat(text))
    assert relation_type(relation) == relation
    assert spark_type(relation).partition("(")[0].lower() in hive | {"decimal", "timestamp", "timestamp_ntz"}
    rows = table(text)
    for name in rows.column_names:
        kind = relation_type(schema(text).field(name).data_type())
        cast_lossless(rows.column(name).combine_chunks(), kind).validate(full=True)


@every_type
def test_values_have_a_size_and_a_form_in_json(text: str) -> None:
    assert (row_bytes(table(text)) > 0).all()
    content = canonical_bytes(table(text).column("x")).to_pylist()
    assert content[-1] is None
    assert len(set(content)) == len(EXAMPLES[text]) + 1
    objects = to_objects(pa.array(EXAMPLES[text], flat(text).arrow))
    kinds = {
        JsonForm.BOOLEAN: bool,
        JsonForm.INTEGER: int,
        JsonForm.NUMBER: float,
        JsonForm.NUMBER_OR_TEXT: str,
        JsonForm.TEXT: str,
    }
    assert {type(each) for each in objects} == {kinds[flat(text).json_form]}
