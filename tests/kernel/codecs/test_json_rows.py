"""JSON and NDJSON rows: what is refused and in which words, and the fast path against the exact one."""

from __future__ import annotations

import dataclasses
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.kernel.codecs import compiled, decode_json_rows, decode_ndjson
from app.kernel.codecs.compiled import compile_schema
from app.kernel.codecs.json import json_rows
from app.kernel.codecs.json.encode import encode_rows_json, encode_rows_ndjson
from app.kernel.format.errors import BodyTooLarge, MalformedBody, SchemaMismatch
from tests.kernel.codecs.samples import schema_of, tables
from tests.support.examples import a_third_of
from tests.support.shares import share

SCHEMA = schema_of(
    {
        "id": "int32!",
        "big": "int64",
        "small": "uint8",
        "flag": "boolean",
        "price": "decimal(5, 2)",
        "ratio": "double",
        "narrow": "float",
        "name": "string",
        "raw": "binary",
        "day": "date",
        "at": "timestamp",
        "at_ms": "timestamp(ms)",
        "wall": "timestamp_ntz",
        "tags": "list<string>",
        "place": "struct<x: int8, y: list<double>>",
        "by_day": "map<date, int16>",
        "by_time": "map<timestamp, string>",
    }
)

# member and value of the second of three rows · what follows the row in the pointer · words of the reason
BAD_VALUES = [
    ('"big": "1"', "big", 'expected int64, got string "1"'),
    ('"big": 1.0', "big", "1.0, which is not written as an integer"),
    ('"big": 1e3', "big", "1e3, which is not written as an integer"),
    ('"big": true', "big", "expected int64, got true"),
    ('"big": 9223372036854775808', "big", "out of range (-9223372036854775808 to 9223372036854775807)"),
    ('"big": ' + "9" * 5000, "big", "out of range"),
    ('"big": [1]', "big", "got an array"),
    ('"big": {"a": 1}', "big", "got an object"),
    ('"small": -1', "small", "out of range (0 to 255)"),
    ('"small": 256', "small", "out of range (0 to 255)"),
    ('"flag": 1', "flag", "expected boolean, got the number 1"),
    ('"flag": "true"', "flag", 'got string "true"'),
    ('"ratio": NaN', "ratio", "got NaN, which is no JSON number"),
    ('"ratio": Infinity', "ratio", "got Infinity, which is no JSON number"),
    ('"ratio": -Infinity', "ratio", "got -Infinity, which is no JSON number"),
    ('"ratio": "1.5"', "ratio", 'got string "1.5"'),
    ('"ratio": 1e400', "ratio", "1e400, which is out of range"),
    ('"narrow": 1e39', "narrow", "1e39, which is out of range"),
    ('"narrow": "1"', "narrow", 'got string "1"'),
    ('"price": 1.005', "price", "more than 2 digits after the point"),
    ('"price": "1234.5"', "price", "more than 3 digits before the point"),
    ('"price": "1,5"', "price", "which is not a decimal number"),
    ('"price": "NaN"', "price", "which is not a decimal number"),
    ('"price": 1e999999999999', "price", "out of range"),
    ('"price": "' + "0" * 2000 + '1"', "price", "out of range"),
    ('"price": true', "price", "expected decimal(5, 2), got true"),
    ('"name": 1', "name", "expected string, got the number 1"),
    ('"name": "a\\ud800b"', "name", "a lone surrogate"),
    ('"raw": "YQ"', "raw", "which is not base64"),
    ('"raw": "YR=="', "raw", "not the canonical base64"),
    ('"raw": "YQ==YQ=="', "raw", "which is not base64"),
    ('"raw": "é==="', "raw", "which is not base64"),
    ('"day": "2026-02-29"', "day", "which is not a date: day"),
    ('"day": "0000-01-01"', "day", "year 0 is out of range"),
    ('"day": "10000-01-01"', "day", "which is not written as YYYY-MM-DD"),
    ('"day": "2026-1-1"', "day", "which is not written as YYYY-MM-DD"),
    ('"day": 20260101', "day", "expected date, got the number 20260101"),
    ('"at": "2026-01-01T00:00:00"', "at", "which lacks a zone"),
    ('"at": "2026-01-01"', "at", "which is not written as YYYY-MM-DDTHH:MM:SS"),
    ('"at": "2026-01-01T00:00Z"', "at", "which is not written as YYYY-MM-DDTHH:MM:SS"),
    ('"at": "2026-01-01T00-02:00"', "at", "which is not written as YYYY-MM-DDTHH:MM:SS"),
    ('"at": "2016-12-31T23:59:60Z"', "at", "second must be in 0..59"),
    ('"at": "2026-01-01T24:00:00Z"', "at", "hour must be in 0..23"),
    ('"at": "2026-01-01T00:00:00+24:00"', "at", "offset is out of range"),
    ('"at": "2026-01-01T00:00:00.1234567Z"', "at", "more than 6 fractional digits"),
    ('"at": "0001-01-01T00:00:00+01:00"', "at", "outside the years 0001–9999"),
    ('"at": "9999-12-31T23:59:59-01:00"', "at", "outside the years 0001–9999"),
    ('"at": "0000-12-31T23:00:00-02:00"', "at", "year 0 is out of range"),
    ('"at": 1767225600', "at", "expected timestamp, got the number"),
    ('"at_ms": "2026-01-01T00:00:00.0001Z"', "at_ms", "more than 3 fractional digits"),
    ('"wall": "2026-01-01T00:00:00Z"', "wall", "which has a zone"),
    ('"tags": "a"', "tags", 'expected list<string>, got string "a"'),
    ('"tags": {"a": 1}', "tags", "expected list<string>, got an object"),
    ('"tags": ["a", 2]', "tags/1", "expected string, got the number 2"),
    ('"place": {"x": 128}', "place/x", "out of range (-128 to 127)"),
    ('"place": {"y": [1, NaN]}', "place/y/1", "got NaN"),
    ('"place": {"z": 1}', "place/z", 'no field "z"'),
    ('"place": {"x": 1, "x": 1}', "place/x", '"x" appears more than once'),
    ('"by_day": {"2026-01-32": 1}', "by_day/2026-01-32", "as a key of the map: expected date"),
    ('"by_day": {"2026-01-01": 70000}', "by_day/2026-01-01", "expected int16"),
    ('"by_day": {"2026-01-01": 1, "2026-01-01": 2}', "by_day/2026-01-01", "appears more than once"),
    (
        '"by_time": {"2026-01-01T00:00:00Z": "a", "2026-01-01T01:00:00+01:00": "b"}',
        "by_time/2026-01-01T01:00:00+01:00",
        "denotes the same timestamp as an earlier one",
    ),
    ('"by_day": [1]', "by_day", "expected map<date, int16>, got an array"),
    ('"name": "a", "name": "a"', "name", 'the member "name" appears more than once'),
    ('"name": null, "n\\u0061me": null', "name", 'the member "name" appears more than once'),
    ('"Name": "a"', "Name", 'the schema has no field "Name"; it has "name"'),
    ('"nme": "a"', "nme", 'the schema has no field "nme"; did you mean "name"?'),
    ('"a/b~c": 1', "a~1b~0c", "the schema has no field"),
]
BAD_ROWS = [
    ("[1]", "", "expected an object with the fields of a row, got an array"),
    ("null", "", "expected an object with the fields of a row, got null"),
    ("7", "", "expected an object with the fields of a row, got the number 7"),
    ("{}", "/id", "a value is required"),
    ('{"id": null}', "/id", "got null"),
]
ROWS = [(f'{{"id": 1, {members}}}', f"/{where}", reason) for members, where, reason in BAD_VALUES] + BAD_ROWS


@pytest.mark.parametrize(("row", "where", "reason"), ROWS)
def test_bad_row_is_named_by_field_and_reason(row, where, reason):
    for refused, start in (
        (
            lambda: decode_ndjson(f'{{"id":0}}\n\n{row}\n{{"id":2}}'.encode(), SCHEMA, first_row=40),
            "/rows/41",
        ),
        (lambda: decode_json_rows(f'[{{"id":0}}, {row} ,{{"id":2}}]'.encode(), SCHEMA), "/source/rows/1"),
    ):
        with pytest.raises(SchemaMismatch) as caught:
            refused()
        assert [error["pointer"] for error in caught.value.facts["errors"]] == [start + where]
        assert reason in caught.value.facts["errors"][0]["detail"]
        assert caught.value.facts["error_count"] == 1
        assert start + where in caught.value.detail


GOOD_VALUES = [
    ('"big": -0', "big", 0),
    ('"ratio": 1', "ratio", 1.0),
    ('"ratio": 123456789012345678901234567890e0', "ratio", 123456789012345678901234567890.0),
    ('"price": 1e2', "price", "100.00"),
    ('"price": "1.500"', "price", "1.50"),
    ('"price": 999.99', "price", "999.99"),
    ('"price": "-0"', "price", "0.00"),
    ('"name": "\\ud83d\\ude00"', "name", "😀"),
    ('"name": "\\u0000"', "name", "\x00"),
    ('"na\\u006de": "x"', "name", "x"),
    ('"at": "2026-01-01T00:00:00.123456000Z"', "at", "2026-01-01 00:00:00.123456+00:00"),
    ('"at": "2026-01-01 01:30:00+0130"', "at", "2026-01-01 00:00:00+00:00"),
    ('"at_ms": "2026-01-01T00:00:00.5000-00:00"', "at_ms", "2026-01-01 00:00:00.500000+00:00"),
    ('"wall": "9999-12-31T23:59:59.999999"', "wall", "9999-12-31 23:59:59.999999"),
    ('"place": {}', "place", {"x": None, "y": None}),
    ('"by_day": {}', "by_day", []),
]


@pytest.mark.parametrize(("members", "name", "value"), GOOD_VALUES)
def test_alternative_notations_of_a_value_are_accepted(members, name, value):
    row = f'{{"id": 1, {members}}}'.encode()
    for table in (decode_ndjson(row, SCHEMA), decode_json_rows(b"[" + row + b"]", SCHEMA)):
        assert table.schema == SCHEMA.to_arrow()
        found = table[name][0].as_py()
        assert (str(found) if isinstance(value, str) else found) == value


@pytest.mark.parametrize(
    ("body", "reason", "facts"),
    [
        (b"", "the body is empty", {}),
        (b" \n\r\n", "the body is empty", {}),
        (b'\xef\xbb\xbf{"id":1}', "byte order mark", {"byte": 0}),
        ('{"id":1}'.encode("utf-16"), "byte order mark", {"byte": 0}),
        (b'{"id":0}\n\n{"id":1', "not JSON", {"row": 1, "line": 3, "byte": 17}),
        (b'{"id":0}\n{"id":1} x', "not JSON: extra data", {"row": 1, "line": 2, "byte": 18}),
        (b'{"id":0}\n{"id":1,}', "not JSON", {"row": 1, "line": 2}),
        (b'{"id":0}\n{"id":1}{"id":2}', "not JSON: extra data", {"row": 1, "line": 2, "byte": 17}),
        (b'{"id":\n1}', "not JSON", {"row": 0, "line": 1, "byte": 6}),
        (b'{"id":0}\n{"id":1,"name":"\xff"}', "invalid UTF-8", {"row": 1, "line": 2, "byte": 25}),
        (b'{"id":0,"name":"\xed\xa0\x80"}', "invalid UTF-8", {"row": 0, "byte": 16}),
        (b'{"id":0,"name":"a\x01"}', "not JSON: invalid control character", {"row": 0, "byte": 17}),
        (b'{"id":0,"price":"\xff"}', "invalid UTF-8", {"row": 0, "byte": 17}),
        (b'{"id":01}', "not JSON", {"row": 0}),
        (b'{"id":0,"tags":' + b"[" * 100_000, "nested too deeply", {"row": 0}),
        (b'{"id":0,"price":' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply", {"row": 0}),
        (b"\x00\x01\x02", "not JSON", {"row": 0}),
    ],
)
def test_malformed_ndjson_is_named_by_position(body, reason, facts):
    with pytest.raises(MalformedBody) as caught:
        decode_ndjson(body, SCHEMA)
    assert reason in caught.value.detail
    assert facts.items() <= caught.value.facts.items()


@pytest.mark.parametrize(
    ("body", "reason", "facts"),
    [
        (b"", "the body is empty", {}),
        (b'[{"id":1},]', "not JSON", {"line": 1, "byte": 10}),
        (b'[{"id":1} {"id":2}]', "not JSON: expecting ',' or ']'", {"line": 1, "byte": 10}),
        (b'[\n{"id":1},\n{"id":2', "not JSON", {"line": 3, "byte": 19}),
        (b'[{"id":1}] x', "not JSON: extra data", {"byte": 11}),
        (b'[{"id":1,"name":"\xff"}]', "invalid UTF-8", {"byte": 17}),
        (b"[" * 100_000, "nested too deeply", {}),
        (b"\xef\xbb\xbf[]", "byte order mark", {}),
    ],
)
def test_malformed_array_is_named_by_position(body, reason, facts):
    with pytest.raises(MalformedBody) as caught:
        decode_json_rows(body, SCHEMA)
    assert reason in caught.value.detail
    assert facts.items() <= caught.value.facts.items()


@pytest.mark.parametrize(
    ("body", "got"), [(b'{"id":1}', "an object"), (b"null", "null"), (b'"x"', 'string "x"')]
)
def test_value_other_than_an_array_is_refused(body, got):
    with pytest.raises(SchemaMismatch, match="/source/rows: expected an array of row objects, got " + got):
        decode_json_rows(body, SCHEMA)


def test_empty_array_is_a_table_without_rows():
    assert decode_json_rows(b" [ ] ", SCHEMA) == SCHEMA.to_arrow().empty_table()


def test_fifty_errors_are_listed_and_errors_are_counted_up_to_a_bound():
    def refused(bad: int) -> SchemaMismatch:
        rows = [b'{"id":1}'] * 5000 + [b'{"id":"x"}'] * bad
        with pytest.raises(SchemaMismatch) as caught:
            decode_ndjson(b"\n".join(rows), SCHEMA)
        return caught.value

    facts = refused(120).facts
    assert [error["pointer"] for error in facts["errors"]] == [f"/rows/{row}/id" for row in range(5000, 5050)]
    assert facts["error_count"] == 120
    assert not facts["counting_stopped"]
    many = refused(3000)
    assert many.facts["error_count"] >= 1000
    assert many.facts["counting_stopped"]
    assert many.detail.startswith("at least ")


def test_rows_that_omit_fields_are_bounded_in_memory(monkeypatch):
    for module in (compiled, json_rows):
        monkeypatch.setattr(module, "TABLE_VALUES_MAX", 100_000)
    wide = schema_of({f"f{number}": "string" for number in range(200)})
    nested = schema_of({"l": "list<struct<" + ", ".join(f"m{number}: int8" for number in range(50)) + ">>"})
    for body in (b"{}\n" * 600, b'{"f1":null}\n' * 600):
        with pytest.raises(BodyTooLarge):
            decode_ndjson(body, wide)
        assert decode_ndjson(body[: len(body) // 2], wide).num_rows == 300
    with pytest.raises(BodyTooLarge):
        decode_json_rows(b"[" + b",".join([b"{}"] * 600) + b"]", wide)
    for decode, body in ((decode_ndjson, b"%s"), (decode_json_rows, b"[%s]")):
        with pytest.raises(BodyTooLarge):
            decode(body % (b'{"l":[' + b",".join([b"{}"] * 3000) + b"]}"), nested)
        assert decode(body % (b'{"l":[' + b",".join([b"{}"] * 1000) + b"]}"), nested).num_rows == 1


def test_errors_of_one_row_are_bounded():
    for row in (
        b"{" + b",".join(b'"k%d":1' % number for number in range(5000)) + b"}",
        b'{"id":1,"tags":[' + b",".join([b"1"] * 5000) + b"]}",
        b'{"id":1,"by_day":{' + b",".join(b'"x%d":1' % number for number in range(5000)) + b"}}",
        b"{" + b",".join([b'"id":1'] * 5000) + b"}",
    ):
        with pytest.raises(SchemaMismatch) as caught:
            decode_ndjson(row, SCHEMA)
        assert caught.value.facts["error_count"] == 1000
        assert caught.value.facts["counting_stopped"]
    with pytest.raises(SchemaMismatch) as caught:
        decode_ndjson(b'{"id":1,"' + b"n" * 10_000 + b'":1}', SCHEMA)
    assert len(caught.value.detail) < 1000
    assert len(caught.value.facts["errors"][0]["pointer"]) < 300


@given(tables())
@settings(max_examples=a_third_of(150), deadline=None)
def test_encoded_json_decodes_to_the_same_values(sample):
    schema, table = sample
    assert decode_json_rows(encode_rows_json(table), schema) == table
    lines = encode_rows_ndjson(table)
    if table.num_rows:
        decoded = decode_ndjson(lines, schema)
        assert decoded == table
        assert decoded.schema.equals(schema.to_arrow(), check_metadata=True)
    assert encode_rows_json(table) == b"[" + lines[:-1].replace(b"\n", b",") + b"]"


def outcome(decode, body, schema):
    """The table, or what is wrong with the body."""
    try:
        return decode(body, schema)
    except (SchemaMismatch, MalformedBody) as fault:
        return type(fault), fault.detail


def exactly(decode, body, schema):
    """The outcome where every row is read one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            json_rows,
            "compile_schema",
            lambda schema: dataclasses.replace(compile_schema(schema), decode_row=None),
        )
        return outcome(decode, body, schema)


@share(2)
@given(tables(), st.integers(0, 2**32))
@settings(max_examples=a_third_of(200), deadline=None)
def test_fast_and_exact_decoders_agree_on_damaged_bodies(sample, seed):
    schema, table = sample
    randomness = random.Random(seed)
    for decode, encode in ((decode_ndjson, encode_rows_ndjson), (decode_json_rows, encode_rows_json)):
        body = encode(table)
        for _ in range(6):
            damaged = damage(body, randomness)
            assert outcome(decode, damaged, schema) == exactly(decode, damaged, schema), damaged


PIECES = [
    b'"',
    b"\\",
    b",",
    b":",
    b"null",
    b"0",
    b"1.0",
    b"-",
    b"e5",
    b"{}",
    b"[]",
    b'"":1,',
    b" ",
    b"\xff",
    b"\\u0041",
]


def damage(body: bytes, randomness: random.Random) -> bytes:
    """The body with a few bytes dropped, repeated, or put in."""
    changed = bytearray(body)
    for _ in range(randomness.randrange(1, 4)):
        start = randomness.randrange(len(changed) + 1)
        end = start + randomness.randrange(0, 12)
        match randomness.randrange(4):
            case 0:
                del changed[start : start + randomness.randrange(1, 4)]
            case 1:
                changed[start:start] = changed[start:end]
            case 2:
                # A whole member again, if that is what lies there.
                at = changed.find(b'"', start)
                until = changed.find(b",", at)
                changed[at:at] = changed[at : until + 1] if 0 <= at < until else b""
            case _:
                changed[start:start] = randomness.choice(PIECES)
    return bytes(changed)


def test_names_outside_the_fast_decoder_are_read():
    schema = schema_of({'q"': "int8!", "b\\s": 'struct<`x"`: string>'})
    assert compile_schema(schema).decode_row is None
    rows = [{'q"': 1, "b\\s": {'x"': "y"}}, {'q"': 2, "b\\s": None}]
    table = pa.Table.from_pylist(rows, schema=schema.to_arrow())
    assert decode_ndjson(encode_rows_ndjson(table), schema) == table


@pytest.mark.parametrize(
    ("value", "reason"), [(b'"\\ud800"', "no character"), (b'{"y": NaN}', "NaN is no JSON number")]
)
def test_unknown_member_that_is_no_json_is_refused_for_that(value: bytes, reason: str) -> None:
    with pytest.raises(SchemaMismatch, match=reason) as caught:
        decode_ndjson(b'{"id": 1}\n{"id": 2, "v": 1, "w": %b}\n' % value, schema_of({"id": "int64"}))
    assert len(caught.value.facts["errors"]) == 1


def test_array_in_lines_is_named() -> None:
    with pytest.raises(
        MalformedBody, match="NDJSON is one object per line, so send an array as application/json"
    ):
        decode_ndjson(b'[\n {"id": 1},\n {"id": 2}\n]\n', schema_of({"id": "int64"}))
