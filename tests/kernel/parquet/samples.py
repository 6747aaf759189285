"""Stored Parquet files of every form, what is exchanged in them, and the file that is served."""

from __future__ import annotations

import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from app.kernel.format.schema.schema import Field
from app.kernel.format.schema.types import FIELD_ID_METADATA
from app.kernel.parquet.exchange import Exchange, exchange
from app.kernel.parquet.exchanged_file import ExchangedFile, read_footer

SECRET = "secret_of_nobody"
"""The name of the column that is hidden; its values begin with the same text in capital letters."""


def column(number: int, member_ids: Mapping[str, int] | None = None) -> Field:
    """A column with its ids; names and types are those of the file."""
    return Field(id=number, name=f"column {number}", type="string", member_ids=dict(member_ids or {}))


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A column with its type, the ids of its members, and its value in the row of a number."""

    name: str
    type: pa.DataType
    value: Any
    member_ids: Mapping[str, int] = field(default_factory=dict)


_STRUCT = pa.struct(
    [("a", pa.int32()), ("b.c", pa.list_(pa.string())), ("d", pa.struct([("`", pa.bool_())]))]
)
SAMPLES = (
    Sample(name="id", type=pa.int64(), value=lambda row: row),
    Sample(name=SECRET, type=pa.string(), value=lambda row: f"{SECRET.upper()}{row % 50}"),
    Sample(name="narrow", type=pa.uint8(), value=lambda row: row % 256),
    Sample(name="short", type=pa.uint16(), value=lambda row: row * 60 % 65536),
    Sample(name="signed", type=pa.int8(), value=lambda row: row % 100 - 50),
    Sample(name="text", type=pa.string(), value=lambda row: None if row % 7 == 0 else f"text {row % 20}"),
    Sample(
        name="items",
        type=pa.list_(_STRUCT),
        value=lambda row: [{"a": row, "b.c": ["x", None, str(row)], "d": {"`": True}}] * (row % 3),
        member_ids={
            "element": 101,
            "element.a": 102,
            "element.`b.c`": 103,
            "element.`b.c`.element": 104,
            "element.d": 105,
            "element.d.````": 106,
        },
    ),
    Sample(
        name="counts",
        type=pa.map_(pa.string(), pa.list_(pa.uint8())),
        value=lambda row: [("k", [row % 256]), ("l", None)],
        member_ids={"key": 107, "value": 108, "value.element": 109},
    ),
    Sample(name="at", type=pa.timestamp("us", "UTC"), value=lambda row: datetime.fromtimestamp(row, UTC)),
    Sample(name="day", type=pa.date32(), value=lambda row: date.fromordinal(700_000 + row)),
    Sample(name="price", type=pa.decimal128(20, 2), value=lambda row: Decimal(row) / 4),
    Sample(name="share", type=pa.float64(), value=lambda row: row / 3),
    Sample(name="raw", type=pa.binary(), value=lambda row: bytes([row % 256]) * 3),
)
OWN = ("_hw_version", "_hw_offset")
COLUMNS = tuple(column(number, sample.member_ids) for number, sample in enumerate(SAMPLES, 1))
SECRET_ID = 2
SEEN = frozenset(column.id for column in COLUMNS) - {SECRET_ID}
ALL = SEEN | {SECRET_ID}


def rows(count: int) -> pa.Table:
    """Rows of all columns, the service's own among them, which have no ids."""
    values = [[sample.value(row) for row in range(count)] for sample in SAMPLES]
    fields = [
        pa.field(sample.name, sample.type, metadata={FIELD_ID_METADATA: str(number).encode()})
        for number, sample in enumerate(SAMPLES, 1)
    ]
    own = [pa.nulls(count, pa.int64()), pa.array(range(-1, -1 - count, -1), pa.int64())]
    arrays = [pa.array(each, sample.type) for each, sample in zip(values, SAMPLES, strict=True)]
    return pa.table([*arrays, *own], pa.schema([*fields, *(pa.field(name, pa.int64()) for name in OWN)]))


def stored(table: pa.Table, **options: Any) -> bytes:
    """A stored file with these rows."""
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def opened(data: bytes, what: Exchange) -> ExchangedFile:
    """The exchanged file of these stored bytes. Reads beyond their end fail."""

    def read(start: int, count: int) -> bytes:
        assert 0 <= start <= start + count <= len(data)
        return data[start : start + count]

    return ExchangedFile(read_footer(read, len(data), what), read)


def served(
    data: bytes,
    visible: Collection[int] = SEEN,
    columns: Sequence[Field] = COLUMNS,
    layout: int | None = None,
) -> bytes:
    """All bytes of the exchanged file."""
    file = opened(data, exchange(columns, visible, layout))
    return file.read(0, file.size_bytes)


WRITERS: Mapping[str, Mapping[str, Any]] = {
    "defaults": {},
    "row groups": {"row_group_size": 130},
    "small pages": {"data_page_size": 200, "row_group_size": 300, "write_page_index": True},
    "pages v2": {"data_page_version": "2.0", "write_page_index": True, "row_group_size": 400},
    "plain": {"use_dictionary": False, "compression": "none"},
    "checksums": {"write_page_checksum": True, "compression": "gzip"},
    "zstd": {"compression": "zstd"},
    "lz4": {"compression": "lz4"},
    "brotli": {"compression": "brotli"},
    "no statistics": {"write_statistics": False, "store_schema": False},
    "sorted": {
        "sorting_columns": [pq.SortingColumn(0), pq.SortingColumn(1), pq.SortingColumn(2)],
        "row_group_size": 200,
    },
    "Bloom filters": {
        "bloom_filter_options": {"text": {"ndv": 50}, SECRET: {"ndv": 50}},
        "row_group_size": 250,
    },
    "version 1": {"version": "1.0", "use_deprecated_int96_timestamps": False},
}
