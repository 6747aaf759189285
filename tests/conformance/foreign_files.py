"""Small files of the kinds that public suites have, made from their descriptions.

Each is read as the rows that it holds, or refused for a reason.

Parquet as the files of parquet-testing, Arrow as the golden streams of Arrow, JSON as JSONTestSuite, CSV as the suites
of CSV parsers, Avro as the interoperability files of its libraries.
"""

from __future__ import annotations

import datetime as dt
import decimal
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.json.json_rows import decode_ndjson
from app.kernel.codecs.messages.avro_file import AvroFile
from app.kernel.codecs.messages.records import json_line
from app.kernel.codecs.shape_inference import infer_shapes
from app.kernel.codecs.splits import Split
from app.kernel.codecs.stream import iter_tables
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.rows.formats import Format
from tests.kernel.codecs.samples import schema_of

Rows = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class ForeignFile:
    """A file. `expected`: its rows, or a part of the reason for which it is refused."""

    suite: str
    name: str
    read: Callable[[], Rows]
    expected: Rows | str


def foreign_files() -> list[ForeignFile]:
    """All of them."""
    return [*_json(), *_csv(), *_parquet(), *_arrow(), *_avro()]


# JSON


def _json() -> Iterator[ForeignFile]:
    def file(name: str, content: bytes, kind: str, expected: Any) -> ForeignFile:
        schema = schema_of({"x": kind})
        rows = expected if isinstance(expected, _Reason) else [{"x": expected}]
        return ForeignFile(
            suite="JSON",
            name=name,
            read=lambda: decode_ndjson(b'{"x": ' + content + b"}", schema).to_pylist(),
            expected=rows.text if isinstance(rows, _Reason) else rows,
        )

    for name, text, kind, value in _JSON_VALUES:
        yield file(name, text.encode(), kind, value)
    for name, text, kind in _JSON_FAULTS:
        yield file(name, text.encode(), kind, _Reason("not JSON"))
    for name, octets in _JSON_ENCODINGS:
        yield file(name, octets, "string", _Reason("invalid UTF-8"))
    for name, text, kind, reason in _JSON_MISFITS:
        yield file(name, text.encode(), kind, _Reason(reason))


@dataclass(frozen=True, slots=True)
class _Reason:
    text: str


_JSON_VALUES: Final[list[tuple[str, str, str, Any]]] = [
    ("zero", "0", "int64", 0),
    ("minus zero", "-0", "int64", 0),
    ("greatest int64", "9223372036854775807", "int64", 2**63 - 1),
    ("exponent", "1e5", "double", 1e5),
    ("capital exponent with sign", "1.5E-3", "double", 1.5e-3),
    ("exponent with plus", "1E+2", "double", 100.0),
    ("minus zero with fraction", "-0.0", "double", -0.0),
    ("underflow", "123e-10000000", "double", 0.0),
    ("decimal of 38 digits", "1" * 38, "decimal(38, 0)", decimal.Decimal("1" * 38)),
    ("empty string", '""', "string", ""),
    ("escapes", r'"\"\\\/\b\f\n\r\t"', "string", '"\\/\b\f\n\r\t'),
    ("escaped character", r'"\u00e9"', "string", "é"),
    ("escaped pair of surrogates", r'"\ud83d\ude00"', "string", "😀"),
    ("escaped null", r'"\u0000"', "string", "\0"),
    ("noncharacter", r'"\uFFFF"', "string", "\uffff"),
    ("line separators", '"\u2028\u2029"', "string", "\u2028\u2029"),
    ("delete character", '"\x7f"', "string", "\x7f"),
    ("blanks around", " \t1\t ", "int64", 1),
    ("null", "null", "int64", None),
    ("true", "true", "boolean", True),
    ("empty array", "[]", "list<int64>", []),
    ("array of nulls", "[null, null]", "list<int64>", [None, None]),
    ("nested arrays", "[[1], [], [2, 3]]", "list<list<int64>>", [[1], [], [2, 3]]),
    ("empty object", "{}", "map<string, int64>", []),
    ("empty name", '{"": 1}', "map<string, int64>", [("", 1)]),
    ("object", '{"a": {"b": "c"}}', "struct<a: struct<b: string>>", {"a": {"b": "c"}}),
]
_JSON_FAULTS: Final[list[tuple[str, str, str]]] = [
    ("leading zero", "01", "int64"),
    ("plus sign", "+1", "int64"),
    ("point without digits", "1.", "double"),
    ("point without whole part", ".5", "double"),
    ("exponent without digits", "1e", "double"),
    ("hexadecimal number", "0x1", "int64"),
    ("minus alone", "-", "int64"),
    ("capital true", "True", "boolean"),
    ("cut word", "tru", "boolean"),
    ("single quotes", "'a'", "string"),
    ("string without end", '"a', "string"),
    ("unknown escape", r'"\x41"', "string"),
    ("short escape", r'"\u00e"', "string"),
    ("control character", '"a\x01b"', "string"),
    ("tab in a string", '"a\tb"', "string"),
    ("trailing comma", "[1,]", "list<int64>"),
    ("double comma", "[1,,2]", "list<int64>"),
    ("no comma", "[1 2]", "list<int64>"),
    ("array without end", "[1", "list<int64>"),
    ("wrong end", "[1}", "list<int64>"),
    ("unquoted name", "{a: 1}", "map<string, int64>"),
    ("no colon", '{"a" 1}', "map<string, int64>"),
    ("comment", "1 /* one */", "int64"),
    ("two values", "1 2", "int64"),
    ("nothing", "", "int64"),
]
_JSON_ENCODINGS: Final = [
    ("invalid UTF-8", b'"\xff"'),
    ("overlong UTF-8", b'"\xc0\xaf"'),
    ("surrogate in UTF-8", b'"\xed\xa0\x80"'),
]
_JSON_MISFITS: Final[list[tuple[str, str, str, str]]] = [
    ("minus infinity", "-Infinity", "double", "which is no JSON number"),
    ("NaN", "NaN", "double", "which is no JSON number"),
    ("number out of range", "1e400", "double", "got 1e400, which is out of range"),
    ("integer beyond 64 bits", "9223372036854775808", "int64", "which is out of range"),
    ("fraction in an integer", "1.0", "int64", "not written as an integer"),
    ("string for a number", '"1"', "int64", 'expected int64, got string "1"'),
    ("number for a string", "1", "string", "expected string, got the number 1"),
    ("lone surrogate", r'"\ud800"', "string", "lone surrogate"),
    ("repeated name", '{"a": 1, "a": 2}', "map<string, int64>", "appears more than once"),
    ("unknown member", '{"b": 1}', "struct<a: int64>", "b"),
]

# CSV


def _csv() -> Iterator[ForeignFile]:
    schema = schema_of({"a": "string", "b": "string"})
    for name, content, expected in _CSV_FILES:
        rows = (
            expected if isinstance(expected, str) else [dict(zip("ab", row, strict=True)) for row in expected]
        )
        yield ForeignFile(
            suite="CSV",
            name=name,
            read=lambda content=content: decode_csv(content, schema).to_pylist(),  # type: ignore[misc]
            expected=rows,
        )


_CSV_FILES: Final[list[tuple[str, bytes, str | list[tuple[str | None, str | None]]]]] = [
    ("simple", b"a,b\n1,2\n", [("1", "2")]),
    ("without a last line end", b"a,b\n1,2", [("1", "2")]),
    ("lines of Windows", b"a,b\r\n1,2\r\n", [("1", "2")]),
    ("byte order mark", b"\xef\xbb\xbfa,b\n1,2\n", [("1", "2")]),
    ("quoted names", b'"a","b"\n1,2\n', [("1", "2")]),
    ("other order", b"b,a\n2,1\n", [("1", "2")]),
    ("quoted comma", b'a,b\n"1,5",2\n', [("1,5", "2")]),
    ("quoted line end", b'a,b\n"1\n5",2\n', [("1\n5", "2")]),
    ("quoted line end of Windows", b'a,b\r\n"1\r\n5",2\r\n', [("1\r\n5", "2")]),
    ("doubled quotes", b'a,b\n"1""5",2\n', [('1"5', "2")]),
    ("quotes only", b'a,b\n"""",2\n', [('"', "2")]),
    ("empty and null", b'a,b\n,""\n', [(None, "")]),
    ("blanks stay", b"a,b\n 1 , 2\n", [(" 1 ", " 2")]),
    ("Unicode", "a,b\nż,😀\n".encode(), [("ż", "😀")]),
    ("JSON in a cell", b'a,b\n"{""x"": 1}",2\n', [('{"x": 1}', "2")]),
    ("missing column", b"a\n1\n", [("1", None)]),
    ("blank lines", b"a,b\n\n1,2\n\n", [("1", "2")]),
    ("header only", b"a,b\n", []),
    ("null character", b"a,b\n\x001,2\n", [("\x001", "2")]),
    ("too few cells", b"a,b\n1\n", "1"),
    ("too many cells", b"a,b\n1,2,3\n", "3"),
    ("quote without end", b'a,b\n"1,2\n', "quot"),
    ("text behind a quote", b'a,b\n"1"5,2\n', "quot"),
    ("unknown column", b"a,c\n1,2\n", "c"),
    ("repeated column", b"a,a\n1,2\n", "more than once"),
    ("invalid UTF-8", b"a,b\n\xff,2\n", "UTF-8"),
    ("empty", b"", "empty"),
]

# Parquet and Arrow


def _columnar(form: Format, body: bytes) -> Rows:
    types = inferred_types(infer_shapes(form, io.BytesIO(body), Split()))
    schema = schema_of(types)
    tables = list(iter_tables(form, io.BytesIO(body), schema))
    return pa.concat_tables(tables or [schema.to_arrow().empty_table()]).to_pylist()


UTC: Final = dt.UTC
FAR: Final = dt.datetime(9999, 12, 31)  # noqa: DTZ001 - INT96 has wall-clock times
NOON: Final = dt.datetime(2026, 11, 21, 12, tzinfo=UTC)
SAMPLE: Final = pa.table(
    {
        "id": pa.array(range(1_000), pa.int64()),
        "name": [f"name {number % 7}" if number % 5 else None for number in range(1_000)],
        "size": pa.array([number / 8 for number in range(1_000)], pa.float64()),
        "tags": pa.array([["a", None][: number % 3] for number in range(1_000)], pa.list_(pa.string())),
        "at": pa.array([NOON] * 1_000, pa.timestamp("us", "UTC")),
        "place": pa.array(
            [{"x": number, "y": None} for number in range(1_000)],
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ),
        "pairs": pa.array([[("k", number)] for number in range(1_000)], pa.map_(pa.string(), pa.int64())),
    }
)


def _parquet_body(table: pa.Table, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return file.getvalue()


def _parquet_file(
    name: str, table: pa.Table, expected: Rows | str | None = None, **options: Any
) -> ForeignFile:
    return ForeignFile(
        suite="Parquet",
        name=name,
        read=lambda: _columnar(Format.PARQUET, _parquet_body(table, **options)),
        expected=table.to_pylist() if expected is None else expected,
    )


def _parquet() -> Iterator[ForeignFile]:
    yield from _parquet_layouts()
    yield from _parquet_types()
    body = _parquet_body(SAMPLE, compression="none", write_page_checksum=True)
    at = body.index(b"name 1")
    for name, damaged, reason in (
        ("encrypted", b"PARE" + body[4:], "encrypted"),
        ("another magic", b"ORC" + body[3:], "does not start with PAR1"),
        ("cut off", body[: len(body) // 2], "cannot be read"),
        ("damaged page", body[:at] + b"NAME" + body[at + 4 :], "cannot be read"),
        ("empty", b"", "does not start with PAR1"),
    ):
        yield ForeignFile(
            suite="Parquet",
            name=name,
            read=lambda damaged=damaged: _columnar(Format.PARQUET, damaged),  # type: ignore[misc]
            expected=reason,
        )


def _parquet_layouts() -> Iterator[ForeignFile]:
    file = _parquet_file
    for version in ("1.0", "2.4", "2.6"):
        yield file(f"format version {version}", SAMPLE, version=version, data_page_version="1.0")
    yield file("data pages of version 2", SAMPLE, data_page_version="2.0")
    for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
        yield file(f"compression {codec}", SAMPLE, compression=codec)
    yield file("many row groups", SAMPLE, row_group_size=7)
    yield file("small pages", SAMPLE, data_page_size=64, write_batch_size=8)
    yield file("without dictionaries", SAMPLE, use_dictionary=False)
    yield file("dictionaries that overflow", SAMPLE, dictionary_pagesize_limit=16)
    yield file("checksums of pages", SAMPLE, write_page_checksum=True)
    yield file("page index", SAMPLE, write_page_index=True)
    yield file("without statistics", SAMPLE, write_statistics=False)
    yield file("without Arrow's schema", SAMPLE, store_schema=False)
    for encoding, column, kind in (
        ("DELTA_BINARY_PACKED", "id", SAMPLE.select(["id"])),
        ("BYTE_STREAM_SPLIT", "size", SAMPLE.select(["size"])),
        ("DELTA_LENGTH_BYTE_ARRAY", "name", SAMPLE.select(["name"])),
        ("DELTA_BYTE_ARRAY", "name", SAMPLE.select(["name"])),
        ("PLAIN", "name", SAMPLE.select(["name"])),
    ):
        yield file(f"encoding {encoding}", kind, use_dictionary=False, column_encoding={column: encoding})
    yield file("boolean run lengths", pa.table({"x": [True] * 900 + [False, None]}), data_page_version="2.0")
    yield file("no rows", SAMPLE.slice(0, 0))
    yield file("nulls only", pa.table({"x": pa.nulls(3, pa.int32())}))
    yield file(
        "required columns",
        SAMPLE.select(["id"]).cast(pa.schema([pa.field("id", pa.int64(), nullable=False)])),
    )
    yield file(
        "lists in lists",
        pa.table({"x": pa.array([[[1], None, []], None, []], pa.list_(pa.list_(pa.int32())))}),
    )
    yield file(
        "lists of structs",
        pa.table({"x": pa.array([[{"a": 1}, None], None], pa.list_(pa.struct([("a", pa.int8())])))}),
    )
    yield file("always null in structs", pa.table({"x": [{"a": None, "b": 1}]}), [{"x": {"b": 1}}])
    yield file("names with points", pa.table({"a.b": [1], "c d": ["x"]}))


def _parquet_types() -> Iterator[ForeignFile]:
    file = _parquet_file
    for digits, what in ((9, "32 bits"), (18, "64 bits"), (38, "bytes")):
        numbers = pa.array(
            [decimal.Decimal(10) ** (digits - 3), decimal.Decimal("-1.25"), None], pa.decimal128(digits, 2)
        )
        yield file(f"decimals of {what}", pa.table({"x": numbers}), store_decimal_as_integer=digits < 19)
    yield file(
        "unsigned numbers of 64 bits",
        pa.table({"x": pa.array([2**64 - 1], pa.uint64())}),
        [{"x": decimal.Decimal(2**64 - 1)}],
    )
    yield file("half floats", pa.table({"x": pa.array([1.5], pa.float32()).cast(pa.float16())}), [{"x": 1.5}])
    yield file(
        "times of INT96",
        pa.table({"x": pa.array([FAR], pa.timestamp("us"))}),
        use_deprecated_int96_timestamps=True,
    )
    yield file(
        "whole microseconds in nanoseconds",
        pa.table({"x": pa.array([1_000], pa.timestamp("ns", "UTC"))}),
        [{"x": dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)}],
    )
    yield file(
        "parts of microseconds",
        pa.table({"x": pa.array([1_001], pa.timestamp("ns"))}),
        "more than 6 fractional digits",
    )
    yield file("NaN", pa.table({"x": [float("nan")]}), "not a finite number")
    yield file(
        "times of day",
        pa.table({"x": pa.array([dt.time(10, 0, 0, 250_000)], pa.time64("us"))}),
        [{"x": "10:00:00.250000"}],
    )
    yield file(
        "maps with keys of real numbers",
        pa.table({"x": pa.array([[(1.5, 1)]], pa.map_(pa.float64(), pa.int8()))}),
        "a map key must be",
    )
    yield file(
        "decimals of more than 38 digits",
        pa.table({"x": pa.array([decimal.Decimal(1)], pa.decimal256(60, 2))}),
        "decimal precision must be 1–38, not 60",
    )


def _stream(table: pa.Table, *, file: bool = False, **options: Any) -> bytes:
    sink = pa.BufferOutputStream()
    make = ipc.new_file if file else ipc.new_stream
    with make(sink, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=300)
    return bytes(sink.getvalue().to_pybytes())


def _dictionary_stream(*, deltas: bool) -> bytes:
    batches = [
        pa.record_batch([pa.DictionaryArray.from_arrays(pa.array([0, last]), pa.array(values))], ["x"])
        for last, values in ((0, ["a"]), (1, ["a", "b"]))
    ]
    sink = pa.BufferOutputStream()
    with ipc.new_stream(
        sink, batches[0].schema, options=ipc.IpcWriteOptions(emit_dictionary_deltas=deltas)
    ) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(sink.getvalue().to_pybytes())


def _arrow() -> Iterator[ForeignFile]:
    def file(name: str, body: Callable[[], bytes], expected: Rows | str) -> ForeignFile:
        return ForeignFile(
            suite="Arrow", name=name, read=lambda: _columnar(Format.ARROW, body()), expected=expected
        )

    rows = SAMPLE.to_pylist()
    yield file("stream", lambda: _stream(SAMPLE), rows)
    yield file("file", lambda: _stream(SAMPLE, file=True), rows)
    yield file(
        "metadata of version 4", lambda: _stream(SAMPLE, metadata_version=ipc.MetadataVersion.V4), rows
    )
    yield file(
        "stream of Arrow before 0.15",
        lambda: _stream(SAMPLE, use_legacy_format=True, metadata_version=ipc.MetadataVersion.V4),
        "end-of-stream mark is missing",
    )
    for codec in ("lz4", "zstd"):
        yield file(f"compression {codec}", lambda codec=codec: _stream(SAMPLE, compression=codec), rows)  # type: ignore[misc]
    for deltas in (False, True):
        name = "deltas of dictionaries" if deltas else "replaced dictionaries"
        yield file(
            name,
            lambda deltas=deltas: _dictionary_stream(deltas=deltas),
            [{"x": each} for each in "aaab"[:1] * 2 + "ab"],
        )  # type: ignore[misc]
    yield file("no batches", lambda: _stream(SAMPLE.slice(0, 0)), [])
    for name, array, expected in _ARROW_ARRAYS:
        found = expected if isinstance(expected, str) else [{"x": each} for each in expected]
        yield file(name, lambda array=array: _stream(pa.table({"x": array})), found)  # type: ignore[misc]
    body = _stream(SAMPLE)
    yield file("cut off", lambda: body[: len(body) // 2], "Arrow")
    yield file("without an end", lambda: body[:-8], "end")
    yield file("bytes behind the end", lambda: body + b"more", "bytes follow")
    yield file("empty", lambda: b"", "the body is empty")


_ARROW_ARRAYS: Final[list[tuple[str, pa.Array, Any]]] = [
    (
        "views of strings",
        pa.array(["short", "a text longer than a view holds", None], pa.string_view()),
        ["short", "a text longer than a view holds", None],
    ),
    ("large lists", pa.array([[1], None], pa.large_list(pa.int8())), [[1], None]),
    ("lists of fixed size", pa.array([[1, 2], None], pa.list_(pa.int8(), 2)), [[1, 2], None]),
    ("bytes of fixed size", pa.array([b"abc", None], pa.binary(3)), [b"abc", None]),
    ("decimals of 32 bits", pa.array([decimal.Decimal("1.5")], pa.decimal32(3, 1)), [decimal.Decimal("1.5")]),
    (
        "decimals of 256 bits",
        pa.array([decimal.Decimal("1.5")], pa.decimal256(38, 1)),
        [decimal.Decimal("1.5")],
    ),
    ("days in milliseconds", pa.array([dt.date(2026, 11, 21)], pa.date64()), [dt.date(2026, 11, 21)]),
    ("durations", pa.array([1_500], pa.duration("ms")), ["1.500s"]),
    ("a map in a list", pa.array([[[("k", 1)]]], pa.list_(pa.map_(pa.string(), pa.int8()))), [[[("k", 1)]]]),
    ("intervals", pa.array([(1, 2, 3)], pa.month_day_nano_interval()), "no fixed length"),
    (
        "unions",
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1]), pa.array(["a"])]),
        "a column has one type",
    ),
    (
        "runs",
        pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([1])),
        "which no column has",
    ),
    ("views of lists", pa.array([[1]], pa.list_view(pa.int8())), "which no column has"),
    (
        "repeated keys of maps",
        pa.array([[("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int8())),
        "appears more than once",
    ),
    ("times beyond the years", pa.array([10**17], pa.timestamp("ms")), "outside the years 0001–9999"),
]

# Avro

_RECORDS: Final[list[tuple[str, Any, Any, Any]]] = [
    ("null or string", ["null", "string"], None, None),
    ("long", "long", -(2**63), -(2**63)),
    ("int or long", ["int", "long"], 2**40, 2**40),
    ("double", "double", 1e300, 1e300),
    ("boolean", "boolean", True, True),
    ("bytes", "bytes", b"\x00\xff", b"\x00\xff"),
    ("fixed", {"type": "fixed", "name": "f", "size": 2}, b"ab", b"ab"),
    ("enum", {"type": "enum", "name": "e", "symbols": ["A", "B"]}, "B", "B"),
    ("array", {"type": "array", "items": "int"}, [1, 2], [1, 2]),
    ("map", {"type": "map", "values": "long"}, {"k": 1}, [("k", 1)]),
    (
        "record in a record",
        {"type": "record", "name": "s", "fields": [{"name": "a", "type": "int"}]},
        {"a": 1},
        {"a": 1},
    ),
    (
        "always null in a record",
        {
            "type": "record",
            "name": "s",
            "fields": [{"name": "a", "type": "null"}, {"name": "b", "type": "int"}],
        },
        {"a": None, "b": 1},
        {"b": 1},
    ),
    (
        "decimal",
        {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
        decimal.Decimal("-1.25"),
        decimal.Decimal("-1.25"),
    ),
    ("date", {"type": "int", "logicalType": "date"}, dt.date(2026, 11, 21), dt.date(2026, 11, 21)),
    ("timestamp-millis", {"type": "long", "logicalType": "timestamp-millis"}, NOON, NOON),
    ("timestamp-micros", {"type": "long", "logicalType": "timestamp-micros"}, NOON, NOON),
    (
        "timestamp-nanos",
        {"type": "long", "logicalType": "timestamp-nanos"},
        1_000,
        dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    ),
    ("time-millis", {"type": "int", "logicalType": "time-millis"}, dt.time(10), "10:00:00"),
    ("unknown logical type", {"type": "string", "logicalType": "country"}, "PL", "PL"),
]


def _avro_body(kind: Any, value: Any, codec: str = "null", count: int = 1) -> bytes:
    file = io.BytesIO()
    schema = {"type": "record", "name": "r", "fields": [{"name": "x", "type": kind}]}
    fastavro.writer(file, fastavro.parse_schema(schema), [{"x": value}] * count, codec)
    return file.getvalue()


def _avro_rows(body: bytes) -> Rows:
    file = AvroFile(io.BytesIO(body))
    types = {name: member.type for name, member in file.members.items()}
    lines = []
    for _, value in file.records():
        if isinstance(value, Exception):
            raise value
        lines.append(json_line(value))
    return decode_ndjson(b"\n".join(lines), schema_of(types)).to_pylist()


def _avro() -> Iterator[ForeignFile]:
    def file(name: str, body: Callable[[], bytes], expected: Rows | str) -> ForeignFile:
        return ForeignFile(suite="Avro", name=name, read=lambda: _avro_rows(body()), expected=expected)

    for name, kind, value, found in _RECORDS:
        yield file(name, lambda kind=kind, value=value: _avro_body(kind, value), [{"x": found}])  # type: ignore[misc]
    for codec in ("deflate", "bzip2", "xz"):
        yield file(
            f"codec {codec}",
            lambda codec=codec: _avro_body("string", "a", codec, 500),  # type: ignore[misc]
            [{"x": "a"}] * 500,
        )
    body = _avro_body("string", "a", "deflate", 500)
    yield file("cut off", lambda: body[:-20], "cut off")
    yield file("another marker", lambda: body[:-16] + bytes(16), "marker")
    yield file("another magic", lambda: b"Obj\x02" + body[4:], "not an Avro file")
    yield file("damaged block", lambda: body[:-24] + bytes(8) + body[-16:], "not Avro of its schema")
    yield file("union of types", lambda: _avro_body(["int", "string"], 1), "a column has one type")
    yield file("NaN", lambda: _avro_body("double", float("nan")), "not a finite number")
    yield file(
        "parts of microseconds",
        lambda: _avro_body({"type": "long", "logicalType": "timestamp-nanos"}, 1),
        "more than 6 fractional digits",
    )
    yield file("empty", lambda: b"", "not an Avro file")


def table_of_foreign_files() -> str:
    """The counts, as a table for docs/conformance.md."""
    lines = ["| form | files | accepted | refused |\n", "|---|---|---|---|\n"]
    files = foreign_files()
    for suite in dict.fromkeys(each.suite for each in files):
        mine = [each for each in files if each.suite == suite]
        refused = [each.name for each in mine if isinstance(each.expected, str)]
        lines.append(
            f"| {suite} | {len(mine)} | {len(mine) - len(refused)} | {len(refused)}: {', '.join(refused)} |\n"
        )
    return "".join(lines)
