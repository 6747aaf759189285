"""Rows of every type, and the ways to write them down."""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import uuid
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]

NDJSON: Final = "application/x-ndjson"
CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"
FORMATS: Final = {NDJSON: "ndjson", CSV: "csv", ARROW: "arrow", PARQUET: "parquet"}

_MOMENT = dt.datetime(2024, 2, 29, 12, 34, 56, 789012)  # noqa: DTZ001 (of types with and without zone)
# name: type, its Arrow type, then pairs of a value as Python has it and as the service serves it.
_COLUMNS: Final[dict[str, tuple[str, pa.DataType, list[tuple[Any, Any]]]]] = {
    "flag": ("boolean", pa.bool_(), [(True, True), (False, False)]),
    "i8": ("int8", pa.int8(), [(-128, -128), (127, 127)]),
    "i16": ("int16", pa.int16(), [(-32768, -32768), (32767, 32767)]),
    "i32": ("int32", pa.int32(), [(-(2**31), -(2**31)), (2**31 - 1, 2**31 - 1)]),
    "i64": ("int64", pa.int64(), [(-(2**63), -(2**63)), (2**63 - 1, 2**63 - 1)]),
    "u8": ("uint8", pa.uint8(), [(0, 0), (255, 255)]),
    "u16": ("uint16", pa.uint16(), [(0, 0), (65535, 65535)]),
    "u32": ("uint32", pa.uint32(), [(0, 0), (2**32 - 1, 2**32 - 1)]),
    "f": ("float", pa.float32(), [(1.5, 1.5), (-0.25, -0.25)]),
    "d": ("double", pa.float64(), [(0.1, 0.1), (-1e300, -1e300)]),
    "price": (
        "decimal(38, 9)",
        pa.decimal128(38, 9),
        [(Decimal("12345678901234567890.123456789"),) * 2, (Decimal("-0.000000001"),) * 2],
    ),
    "text": ("string", pa.string(), [("", ""), ('né 😀 "quoted",\n\\ end', 'né 😀 "quoted",\n\\ end')]),
    "raw": ("binary", pa.binary(), [(b"", ""), (b"\x00\xff\x80", "AP+A")]),
    "uid": (
        "uuid",
        pa.uuid(),
        [(uuid.UUID(int=number), str(uuid.UUID(int=number))) for number in (0, 2**128 - 1)],
    ),
    "day": ("date", pa.date32(), [(dt.date(1, 1, 1), "0001-01-01"), (dt.date(9999, 12, 31), "9999-12-31")]),
    "at": (
        "timestamp",
        pa.timestamp("us", "UTC"),
        [
            (_MOMENT.replace(tzinfo=dt.UTC), "2024-02-29T12:34:56.789012Z"),
            (dt.datetime(1969, 12, 31, 23, 59, 59, tzinfo=dt.UTC), "1969-12-31T23:59:59Z"),
        ],
    ),
    "at_ms": (
        "timestamp(ms)",
        pa.timestamp("ms", "UTC"),
        [(_MOMENT.replace(microsecond=789000, tzinfo=dt.UTC), "2024-02-29T12:34:56.789Z")] * 2,
    ),
    "wall": ("timestamp_ntz", pa.timestamp("us"), [(_MOMENT, "2024-02-29T12:34:56.789012")] * 2),
    "tags": ("list<string>", pa.list_(pa.string()), [([], []), (["a", None, ""], ["a", None, ""])]),
    "counts": (
        "map<string, int32>",
        pa.map_(pa.string(), pa.int32()),
        [([("x", 1), ("", None)], {"x": 1, "": None}), ([], {})],
    ),
    "place": (
        "struct<name: string, at: list<double>>",
        pa.struct([("name", pa.string()), ("at", pa.list_(pa.float64()))]),
        [
            ({"name": "köln", "at": [1.5]}, {"name": "köln", "at": [1.5]}),
            ({"name": None, "at": None}, {"name": None, "at": None}),
        ],
    ),
}

FIELDS: Final = [
    {"name": "id", "type": "string"},
    *({"name": name, "type": text} for name, (text, _, _) in _COLUMNS.items()),
]
"""The schema of the dataset: column id, the key, and one column of each type."""


def served_rows() -> list[Row]:
    """The rows as the service serves them, and takes them as JSON: extremes of each type, then only nulls."""
    rows = [
        {"id": key} | {name: _plain(pairs[number][1]) for name, (_, _, pairs) in _COLUMNS.items()}
        for number, key in enumerate(["", "ключ"])
    ]
    return [*rows, {"id": "nulls"} | dict.fromkeys(_COLUMNS)]


def arrow_table() -> pa.Table:
    """The same rows, as an Arrow program would make them."""
    columns = {"id": pa.array(["", "ключ", "nulls"])}
    for name, (_, kind, pairs) in _COLUMNS.items():
        columns[name] = pa.array([pairs[0][0], pairs[1][0], None], kind)
    return pa.table(columns)


def written(media_type: str) -> bytes:
    """The rows in one of the raw forms."""
    match media_type:
        case "application/x-ndjson":
            return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in served_rows()).encode()
        case "text/csv":
            return _csv(served_rows())
        case "application/vnd.apache.arrow.stream":
            return arrow_stream(arrow_table())
        case "application/vnd.apache.parquet":
            return parquet(arrow_table())
    raise AssertionError(media_type)


def arrow_stream(table: pa.Table) -> bytes:
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def parquet(table: pa.Table) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def zipped(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def _plain(value: Any) -> Any:
    return format(value, "f") if isinstance(value, Decimal) else value


def _csv(rows: list[Row]) -> bytes:
    """Nulls as nothing at all, the empty string in quotation marks, nested values as JSON."""
    out = io.StringIO()
    csv.writer(out).writerow(rows[0])
    for row in rows:
        out.write(",".join(_cell(value) for value in row.values()) + "\n")
    return out.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return '"' + text.replace('"', '""') + '"'
