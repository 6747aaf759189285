"""Rows and changes as JSON: the exact text of every type."""

from __future__ import annotations

import datetime as dt
import decimal
import json

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs.json.encode import encode_changes_json, encode_rows_json, encode_rows_ndjson
from tests.kernel.codecs.samples import tables
from tests.support.examples import a_third_of

FIRST, LAST = -62_135_596_800, 253_402_300_799


@pytest.mark.parametrize(
    ("values", "kind", "texts"),
    [
        ([True, False, None], pa.bool_(), ["true", "false", "null"]),
        ([-(2**63), 2**63 - 1], pa.int64(), ["-9223372036854775808", "9223372036854775807"]),
        ([2**32 - 1], pa.uint32(), ["4294967295"]),
        ([0.1, -0.0, 1.0, 1e300], pa.float64(), ["0.1", "-0.0", "1.0", "1e+300"]),
        ([0.1], pa.float32(), ["0.1"]),
        ([0.0, -0.0], pa.float64(), ["0.0", "-0.0"]),
        ([7, 7], pa.int16(), ["7", "7"]),
        ([decimal.Decimal("1.5"), decimal.Decimal("-0.01")], pa.decimal128(5, 2), ['"1.50"', '"-0.01"']),
        (
            [decimal.Decimal("1e-20"), 0],
            pa.decimal128(38, 20),
            ['"0.00000000000000000001"', '"0.' + "0" * 20 + '"'],
        ),
        ([decimal.Decimal("9" * 38)], pa.decimal128(38, 0), ['"' + "9" * 38 + '"']),
        ([dt.date(1, 1, 1), dt.date(9999, 12, 31)], pa.date32(), ['"0001-01-01"', '"9999-12-31"']),
        (
            [FIRST * 10**6, LAST * 10**6 + 999_999, -1, 0, 10_000],
            pa.timestamp("us", "UTC"),
            [
                '"0001-01-01T00:00:00Z"',
                '"9999-12-31T23:59:59.999999Z"',
                '"1969-12-31T23:59:59.999999Z"',
                '"1970-01-01T00:00:00Z"',
                '"1970-01-01T00:00:00.010000Z"',
            ],
        ),
        ([1, 1000, None], pa.timestamp("ms"), ['"1970-01-01T00:00:00.001"', '"1970-01-01T00:00:01"', "null"]),
        ([b"", b"\xff\x00", None], pa.binary(), ['""', '"/wA="', "null"]),
        ([[None, b"a"], [], None], pa.list_(pa.binary()), ['[null,"YQ=="]', "[]", "null"]),
        (
            [[[(1, [None])]], None],
            pa.list_(pa.map_(pa.int8(), pa.list_(pa.int8()))),
            ['[{"1":[null]}]', "null"],
        ),
        ([{"x": None}, None], pa.struct({"x": pa.timestamp("ms")}), ['{"x":null}', "null"]),
        ([[(True, 0.5)], []], pa.map_(pa.bool_(), pa.float32()), ['{"true":0.5}', "{}"]),
        ([[(b"\xff", None)]], pa.map_(pa.binary(), pa.int8()), ['{"/w==":null}']),
        (
            [[(decimal.Decimal(0), 1)]],
            pa.map_(pa.decimal128(30, 20), pa.int8()),
            ['{"0.' + "0" * 20 + '":1}'],
        ),
        ([[(0, 1)]], pa.map_(pa.timestamp("us", "UTC"), pa.int8()), ['{"1970-01-01T00:00:00Z":1}']),
    ],
)
def test_value_is_encoded_as_its_json_text(values, kind, texts):
    table = pa.table({"v": pa.array(values, kind)})
    objects = [f'{{"v":{text}}}' for text in texts]
    assert encode_rows_json(table).decode() == "[" + ",".join(objects) + "]"
    assert encode_rows_ndjson(table).decode() == "".join(line + "\n" for line in objects)
    sliced = pa.concat_tables([table, table]).slice(1)
    assert encode_rows_ndjson(sliced).decode().split("\n")[:-1] == (objects + objects)[1:]


@given(st.text(st.characters(codec="utf-8")))
@settings(max_examples=a_third_of(200), deadline=None)
def test_any_text_and_any_name_is_encoded_as_valid_json(text):
    name = text + "n"
    for column in (pa.array([text]), pa.array([[(text, text)]], pa.map_(pa.string(), pa.string()))):
        table = pa.table({name: column})
        value = {text: text} if pa.types.is_map(column.type) else text
        assert json.loads(encode_rows_json(table)) == [{name: value}]
        line = encode_rows_ndjson(table)
        assert json.loads(line) == {name: value}
        assert line.count(b"\n") == 1


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
@settings(max_examples=a_third_of(500), deadline=None)
def test_floats_read_back_as_the_same_value(double, narrow):
    table = pa.table({"d": [double], "f": pa.array([narrow], pa.float32())})
    mapped = table.append_column("m", pa.nulls(1, pa.map_(pa.string(), pa.int8())))
    for encoded in (encode_rows_json(table), encode_rows_json(mapped)):
        (row,) = json.loads(encoded)
        assert row["d"] == double
        assert pa.scalar(str(row["f"])).cast(pa.float32()).as_py() == narrow


def test_tables_without_rows_or_columns_are_encoded():
    empty = pa.table({"a": pa.array([], pa.int8())})
    assert (encode_rows_json(empty), encode_rows_ndjson(empty)) == (b"[]", b"")
    bare = pa.table({"a": [1, 2]}).select([])
    assert (encode_rows_json(bare), encode_rows_ndjson(bare)) == (b"[{},{}]", b"{}\n{}\n")
    mapped = pa.table({"a": pa.array([], pa.map_(pa.string(), pa.int8()))})
    assert (encode_rows_json(mapped), encode_rows_ndjson(mapped)) == (b"[]", b"")


def changes(rows: pa.Table, event_time: pa.Array) -> pa.Table:
    count = rows.num_rows
    return pa.table(
        {
            "row": rows.combine_chunks().to_struct_array(),
            "version": pa.array([7] * count, pa.int64()),
            "offset": pa.array(range(count), pa.int64()),
            "event_time": event_time,
            "op": pa.array([number % 4 for number in range(count)], pa.uint8()),
            "system_time": pa.array([1_700_000_000_123] * count, pa.timestamp("ms", "UTC")),
        }
    )


@pytest.mark.parametrize("extra", [{}, {"m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int8()))}])
def test_changes_are_encoded_as_json(extra):
    rows = pa.table({"offset": ["a", None], "op": pa.array([0, 1], pa.timestamp("us", "UTC")), **extra})
    member = [',"m":{"k":1}', ',"m":null'] if extra else ["", ""]
    times = pa.array([None, 1500], pa.timestamp("ms", "UTC"))
    expected = [
        '{"offset":0,"op":"+A","version":7,"system_time":"2023-11-14T22:13:20.123Z","event_time":null,'
        f'"row":{{"offset":"a","op":"1970-01-01T00:00:00Z"{member[0]}}}}}',
        '{"offset":1,"op":"-R","version":7,"system_time":"2023-11-14T22:13:20.123Z",'
        '"event_time":"1970-01-01T00:00:01.500Z",'
        f'"row":{{"offset":null,"op":"1970-01-01T00:00:00.000001Z"{member[1]}}}}}',
    ]
    table = changes(rows, times)
    assert encode_changes_json(table, as_ndjson=False).decode() == "[" + ",".join(expected) + "]"
    assert encode_changes_json(table, as_ndjson=True).decode() == "".join(line + "\n" for line in expected)
    assert encode_changes_json(table.slice(0, 0), as_ndjson=False) == b"[]"
    assert encode_changes_json(table.slice(0, 0), as_ndjson=True) == b""


@given(tables())
@settings(max_examples=a_third_of(80), deadline=None)
def test_rows_of_changes_are_encoded_like_rows(sample):
    _, table = sample
    encoded = encode_changes_json(changes(table, pa.nulls(table.num_rows)), as_ndjson=True)
    lines = encoded.decode().split("\n")[:-1]
    rows = encode_rows_ndjson(table).decode().split("\n")[:-1]
    symbols = ["+A", "-R", "-C", "+C"]
    assert lines == [
        f'{{"offset":{number},"op":"{symbols[number % 4]}","version":7,'
        f'"system_time":"2023-11-14T22:13:20.123Z","event_time":null,"row":{row}}}'
        for number, row in enumerate(rows)
    ]
