"""Random schemas and rows of every type, and ways to write them down, for the tests of the row codecs."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import strategies as st

from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import (
    DATE_DAYS_MAX,
    DATE_DAYS_MIN,
    PLAIN_TYPES,
    DataType,
    Decimal,
    List,
    Map,
    Struct,
    Timestamp,
    may_be_key,
    timestamp_bounds,
)

INTEGERS = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
}
EPOCH = dt.date(1970, 1, 1)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=12)
ODD_TEXTS = st.sampled_from(
    ['"', "\\", '\\"', '\\\\"', '":', "null", "{", "\x00\x1f\x7f", "\u2028\u2029", "é😀", ""]
)

# A file of DuckDB with an interval, which PyArrow does not write.
INTERVAL_FILE = base64.b64decode(
    "UEFSMRUAFSQVJCwVAhUAFQYVBgAAAgAAAAIBAQAAAAIAAAAAAAAAFQIZLDUAGA1kdWNrZGJfc2NoZW1hFQIAFQ4VGBUCGAFp"
    "JSoAFgIZHBkcJgAcFQ4ZBRkYAWkVABYCFkYWRiYIAAAWRhYCJggWRgAoKER1Y2tEQiB2ZXJzaW9uIHYxLjUuNSAoYnVpbGQg"
    "ZDhjZGFhMzNmZCkZHBwAAAB6AAAAUEFSMQ=="
)

PLAIN_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "float": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "double": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.one_of(TEXTS, ODD_TEXTS),
    "binary": st.binary(max_size=9),
    "date": st.integers(DATE_DAYS_MIN, DATE_DAYS_MAX).map(lambda days: EPOCH + dt.timedelta(days=days)),
    "uuid": st.uuids().map(lambda value: value.bytes),
    **{name: st.integers(*bounds) for name, bounds in INTEGERS.items()},
}


def schema_of(fields: dict[str, str]) -> Schema:
    """The schema of columns by name; a type that ends in `!` is not nullable."""
    return Schema(
        id=1,
        fields=tuple(
            Field(id=number, name=name, type=text.rstrip("!"), nullable=not text.endswith("!"))
            for number, (name, text) in enumerate(fields.items(), 1)
        ),
    )


def scalar_types() -> st.SearchStrategy[DataType]:
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: Decimal(precision, scale))
    )
    timestamps = st.builds(Timestamp, st.sampled_from(["ms", "us"]), st.booleans())
    return st.one_of(st.sampled_from(PLAIN_TYPES), decimals, timestamps)


def data_types() -> st.SearchStrategy[DataType]:
    names = st.one_of(st.sampled_from(["a", "b", "c d", "é", "x"]), st.sampled_from(['q"', "back\\"]))
    return st.recursive(
        scalar_types(),
        lambda inner: st.one_of(
            inner.map(List),
            st.builds(Map, scalar_types().filter(may_be_key), inner),
            st.lists(st.tuples(names, inner), min_size=1, max_size=3, unique_by=lambda member: member[0]).map(
                lambda members: Struct(tuple(members))
            ),
        ),
        max_leaves=3,
    )


def values(data_type: DataType) -> st.SearchStrategy[Any]:
    """Values as pyarrow takes them, extremes included, without null at the top."""
    match data_type:
        case Timestamp(unit):
            return st.integers(*timestamp_bounds(unit))
        case Decimal(precision, scale):
            largest = 10**precision - 1
            wide = decimal.Context(prec=60)
            return st.integers(-largest, largest).map(
                lambda unscaled: wide.scaleb(decimal.Decimal(unscaled), -scale)
            )
        case List(element):
            return st.lists(nullable(element), max_size=3)
        case Map(key, value):
            return st.lists(
                st.tuples(values(key), nullable(value)), max_size=3, unique_by=lambda entry: entry[0]
            )
        case Struct(members):
            return st.fixed_dictionaries({name: nullable(member) for name, member in members})
    return PLAIN_VALUES[str(data_type)]


def nullable(data_type: DataType) -> st.SearchStrategy[Any]:
    return st.one_of(st.none(), values(data_type))


@st.composite
def tables(draw: st.DrawFn, types: st.SearchStrategy[DataType] | None = None) -> tuple[Schema, pa.Table]:
    """A schema of up to four columns and up to five rows of it."""
    kinds = draw(st.lists(types or data_types(), min_size=1, max_size=4))
    names = ["id", "b c", "é\u2028", 'we"ird\\']
    required = draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    schema = schema_of(
        {
            name: f"{kind}{'!' if firm else ''}"
            for name, kind, firm in zip(names, kinds, required, strict=False)
        }
    )
    count = draw(st.integers(0, 5))
    columns = []
    for field, kind, firm in zip(schema.to_arrow(), kinds, required, strict=True):
        column = draw(st.lists(values(kind) if firm else nullable(kind), min_size=count, max_size=count))
        columns.append(pa.array(column, field.type))
    return schema, pa.Table.from_arrays(columns, schema=schema.to_arrow())


def arrow_stream(table: pa.Table, **options: Any) -> bytes:
    """The table as an Arrow IPC stream; `max_chunksize` as an option."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table, **options)
    return out.getvalue()


def arrow_file(table: pa.Table, **options: Any) -> bytes:
    """The table as an Arrow IPC file, compressed as exports are; `max_chunksize` as an option."""
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table, **options)
    return out.getvalue()


PLACES = schema_of(
    {
        "id": "int64!",
        "name": "string",
        "at": "timestamp",
        "places": "list<struct<x: string, y: double>>",
        "by": "map<string, int32>",
    }
)


def places(rows: int) -> pa.Table:
    """A table of PLACES: every kind of column that files treat differently."""
    return pa.Table.from_pylist(
        [
            {
                "id": row,
                "name": None if row % 5 == 0 else f"name {row % 7}",
                "at": row * 1_000_000,
                "places": [{"x": "q", "y": row / 2}] * (row % 3),
                "by": [(f"k{key}", row) for key in range(row % 2)],
            }
            for row in range(rows)
        ],
        schema=PLACES.to_arrow(),
    )


def parquet(table: pa.Table, **options: Any) -> bytes:
    """The table as a Parquet file, written with the options of pyarrow's writer."""
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def compressed_stream(table: pa.Table) -> bytes:
    """The table as an Arrow IPC stream with compressed buffers."""
    out = io.BytesIO()
    with pa.ipc.new_stream(out, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return out.getvalue()


PARQUET_WRITERS = [
    {},
    {"compression": "zstd", "row_group_size": 70},
    {"use_dictionary": False, "compression": "none", "write_page_checksum": True},
    {"data_page_version": "2.0", "compression": "gzip", "data_page_size": 512},
    {"use_dictionary": False, "column_encoding": {"name": "DELTA_BYTE_ARRAY", "id": "DELTA_BINARY_PACKED"}},
    {"use_dictionary": False, "column_encoding": {"name": "DELTA_LENGTH_BYTE_ARRAY"}},
    {"store_schema": False, "dictionary_pagesize_limit": 64},
]
