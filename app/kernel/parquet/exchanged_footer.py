"""The exchanged footer of a stored Parquet file, and which of the bytes before it are served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.kernel.parquet.column_chunks import Ranges, exchanged_row_groups
from app.kernel.parquet.compact import (
    BINARY,
    I32,
    I64,
    LIST,
    FooterTooLarge,
    InvalidFooter,
    Reader,
    ThriftField,
    list_bytes,
    struct_bytes,
)
from app.kernel.parquet.exchange import Exchange, exchanged_size
from app.kernel.parquet.schema_elements import exchanged_schema

MAGIC: Final = b"PAR1"
TRAILER_BYTES: Final = 8
"""The length of the footer (32 bits, little-endian) and the magic bytes, which end a file."""
FOOTER_BYTES_MAX: Final = 16 * 1024 * 1024
"""The most bytes of a footer that is exchanged. A column chunk of numbers has about 120 of them."""

# The numbers of fields of FileMetaData. Others are dropped with a column: they may have its name.
_VERSION: Final = 1
_SCHEMA: Final = 2
_ROWS: Final = 3
_ROW_GROUPS: Final = 4
_CREATED_BY: Final = 6
_COLUMN_ORDERS: Final = 7
_TYPES: Final = {
    _VERSION: I32,
    _SCHEMA: LIST,
    _ROWS: I64,
    _ROW_GROUPS: LIST,
    _CREATED_BY: BINARY,
    _COLUMN_ORDERS: LIST,
}
_REQUIRED: Final = {_VERSION, _SCHEMA, _ROWS, _ROW_GROUPS}


@dataclass(frozen=True, kw_only=True)
class ExchangedFooter:
    """What is served instead of the end of a stored file.

    `size_bytes`: of the served file. `ranges`: the ranges [start, end) of the stored file that are served, ascending;
    what is between them, and behind the last up to `tail`, is zeros. `tail`: the last bytes of the served file.
    """

    size_bytes: int
    ranges: Ranges
    tail: bytes


def footer_bytes(trailer: bytes, stored_size: int) -> int:
    """The length of the footer of a stored file, without the trailer. Raises InvalidFooter.

    FooterTooLarge: beyond FOOTER_BYTES_MAX.

    `trailer`: its last TRAILER_BYTES bytes.
    """
    length = int.from_bytes(trailer[:4], "little")
    if trailer[4:] != MAGIC:
        raise InvalidFooter("the file does not end as a Parquet file")
    if length > stored_size - TRAILER_BYTES - len(MAGIC):
        raise InvalidFooter(f"the footer has {length} bytes, but the file has {stored_size}")
    if length > FOOTER_BYTES_MAX:
        raise FooterTooLarge(f"the footer has {length} bytes; expected at most {FOOTER_BYTES_MAX}")
    return length


def exchanged_footer(footer: bytes, stored_size: int, exchange: Exchange) -> ExchangedFooter:
    """The exchanged footer of a stored file.

    `footer`: the whole stored footer, without the trailer. `stored_size`: of the file, in bytes. Raises InvalidFooter
    for a footer that is damaged, and for one of another file than one with these columns.
    """
    try:
        content, ranges = _exchanged(footer, stored_size - TRAILER_BYTES - len(footer), exchange)
    except IndexError:
        raise InvalidFooter("the footer ends within a value") from None
    tail = content + len(content).to_bytes(4, "little") + MAGIC
    size = exchanged_size(exchange, stored_size)
    least = stored_size - TRAILER_BYTES - len(footer) + len(tail)
    if least > size:
        raise InvalidFooter(f"the exchanged file has {least} bytes; expected at most {size}")
    return ExchangedFooter(size_bytes=size, ranges=ranges, tail=tail)


def _exchanged(footer: bytes, body_end: int, exchange: Exchange) -> tuple[bytes, Ranges]:
    """The new footer without the trailer, and the ranges that are served before it."""
    reader = Reader(footer)
    fields = {each.id: each for each in reader.fields(last=_SCHEMA)}
    if fields.keys() != {_VERSION, _SCHEMA} or fields[_SCHEMA].type != LIST:
        raise InvalidFooter("the footer does not begin with a version and a schema")
    schema = exchanged_schema(fields[_SCHEMA].value, exchange.columns, shows_own=exchange.shows_own)
    fields[_SCHEMA] = ThriftField(_SCHEMA, LIST, schema.value)
    if all(schema.visible_leaves):
        # What follows the schema has no name or value that may not be seen, and takes nearly all of the time.
        return struct_bytes(fields.values())[:-1] + footer[reader.position :], ((0, body_end),)
    fields = {**_file_fields(footer), _SCHEMA: fields[_SCHEMA]}
    ranges = _drop_columns(fields, schema.visible_leaves, body_end)
    return struct_bytes(fields[number] for number in sorted(fields)), ranges


def _file_fields(footer: bytes) -> dict[int, ThriftField]:
    reader = Reader(footer)
    fields = {each.id: each for each in reader.fields()}
    if reader.position != len(footer):
        raise InvalidFooter(f"the footer ends at byte {reader.position} of {len(footer)}")
    if not fields.keys() >= _REQUIRED:
        raise InvalidFooter("the footer lacks its schema or its row groups")
    if any(fields[number].type != kind for number, kind in _TYPES.items() if number in fields):
        raise InvalidFooter("a field of the footer has another type")
    return fields


def _drop_columns(fields: dict[int, ThriftField], visible: list[bool], body_end: int) -> Ranges:
    """Removes hidden columns from the fields, and returns the ranges of bytes that stay."""
    for number in fields.keys() - _TYPES.keys():
        del fields[number]
    row_groups = exchanged_row_groups(fields[_ROW_GROUPS].value, visible, body_end)
    fields[_ROW_GROUPS] = ThriftField(_ROW_GROUPS, LIST, row_groups.value)
    if _COLUMN_ORDERS in fields:
        orders = _visible_orders(fields[_COLUMN_ORDERS].value, visible)
        fields[_COLUMN_ORDERS] = ThriftField(_COLUMN_ORDERS, LIST, orders)
    return row_groups.ranges


def _visible_orders(value: bytes, visible: list[bool]) -> bytes:
    reader = Reader(value)
    kind, count = reader.list_header()
    if count != len(visible):
        raise InvalidFooter(f"the footer has {count} orders of {len(visible)} columns")
    orders = []
    for is_visible in visible:
        start = reader.position
        reader.skip(kind)
        if is_visible:
            orders.append(value[start : reader.position])
    return list_bytes(kind, orders)
