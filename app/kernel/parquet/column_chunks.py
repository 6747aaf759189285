"""The row groups of a Parquet file without some of their column chunks, and the bytes of those that stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import compress, pairwise
from typing import Final, TypeAlias

from app.kernel.parquet.compact import (
    I16,
    I32,
    I64,
    LIST,
    STRUCT,
    FooterTooLarge,
    InvalidFooter,
    Reader,
    ThriftField,
    integer_bytes,
    list_bytes,
    struct_bytes,
)

Ranges: TypeAlias = tuple[tuple[int, int], ...]

CHUNKS_MAX: Final = 50_000
"""The most column chunks of a file from which columns are taken out: about 0.04 ms of one core for each."""
_MAGIC_BYTES: Final = 4
# The numbers of fields of a RowGroup.
_COLUMNS: Final = 1
_TOTAL_UNCOMPRESSED: Final = 2
_SORTING: Final = 4
_TOTAL_COMPRESSED: Final = 6
_GROUP_FIELDS: Final = {1: LIST, 2: I64, 3: I64, 4: LIST, 5: I64, 6: I64, 7: I16}
_GROUP_REQUIRED: Final = {1, 2, 3}
# Of a SortingColumn.
_SORTING_COLUMN: Final = 1
# Of a ColumnChunk.
_METADATA: Final = 3
_INDEXES: Final = ((4, 5), (6, 7))
# Of a ColumnMetaData.
_UNCOMPRESSED: Final = 6
_COMPRESSED: Final = 7
_DATA_OFFSET: Final = 9
_INDEX_OFFSET: Final = 10
_DICTIONARY_OFFSET: Final = 11
_BLOOM_OFFSET: Final = 14
_BLOOM_LENGTH: Final = 15


@dataclass(frozen=True, kw_only=True)
class ExchangedRowGroups:
    """The list of row groups, and the ranges of the file that their columns and indexes have, ascending."""

    value: bytes
    ranges: Ranges


@dataclass(frozen=True, kw_only=True)
class _Chunk:
    """A column chunk: its bytes in the footer, the sizes of its pages, and its ranges of the file."""

    value: bytes
    plain_bytes: int
    page_bytes: int
    ranges: list[tuple[int, int]]


def exchanged_row_groups(value: bytes, visible: list[bool], body_end: int) -> ExchangedRowGroups:
    """The row groups with the visible columns only. Raises InvalidFooter, and FooterTooLarge beyond CHUNKS_MAX.

    `visible`: for each leaf column, whether it stays. `body_end`: where the footer of the stored file begins. A range
    of a column that stays never has a byte of one that does not.
    """
    reader = Reader(value)
    kind, count = reader.list_header()
    if kind != STRUCT and count:
        raise InvalidFooter("the row groups are no list of structs")
    if count * len(visible) > CHUNKS_MAX:
        raise FooterTooLarge(
            f"the file has {count} row groups of {len(visible)} columns; expected at most {CHUNKS_MAX} column chunks"
        )
    groups = []
    visible_ranges, hidden_ranges = [(0, _MAGIC_BYTES)], []
    for _ in range(count):
        fields = {each.id: each for each in reader.fields()}
        _check_group(fields)
        chunks = _chunks(fields, len(visible))
        groups.append(_group_bytes(fields, chunks, visible))
        visible_ranges += [each for chunk in compress(chunks, visible) for each in chunk.ranges]
        hidden_ranges += [
            each for chunk, stays in zip(chunks, visible, strict=True) if not stays for each in chunk.ranges
        ]
    return ExchangedRowGroups(
        value=list_bytes(STRUCT, groups), ranges=_union(visible_ranges, hidden_ranges, body_end)
    )


def _chunks(fields: dict[int, ThriftField], count: int) -> list[_Chunk]:
    reader = Reader(fields[_COLUMNS].value)
    kind, length = reader.list_header()
    if kind != STRUCT or length != count:
        raise InvalidFooter(f"a row group has {length} columns; expected {count}")
    return [_chunk(reader) for _ in range(count)]


def _chunk(reader: Reader) -> _Chunk:
    start = reader.position
    numbers, metadata = reader.numbers(nested=_METADATA)
    value = reader.data[start : reader.position]
    page_bytes = _number(metadata, _COMPRESSED)
    offset = _first_page(metadata)
    ranges = [(offset, offset + page_bytes)]
    for place, size in _INDEXES:
        if place in numbers:
            ranges.append(_range(numbers, place, size))
    if _BLOOM_LENGTH in metadata:
        ranges.append(_range(metadata, _BLOOM_OFFSET, _BLOOM_LENGTH))
    elif _BLOOM_OFFSET in metadata:
        value = _without_bloom_filter(value)
    return _Chunk(
        value=value, plain_bytes=_number(metadata, _UNCOMPRESSED), page_bytes=page_bytes, ranges=ranges
    )


def _first_page(metadata: Mapping[int, int]) -> int:
    """Where the pages begin. Writers set the offset of pages that a column does not have to 0."""
    places = metadata.keys() & {_DATA_OFFSET, _INDEX_OFFSET, _DICTIONARY_OFFSET}
    offsets = [offset for place in places if (offset := _number(metadata, place))]
    return min(offsets, default=0)


def _without_bloom_filter(chunk: bytes) -> bytes:
    """The chunk without its Bloom filter, whose length is not known: readers can do without one."""
    fields = {each.id: each for each in Reader(chunk).fields()}
    metadata = Reader(fields[_METADATA].value).fields()
    value = struct_bytes(field for field in metadata if field.id != _BLOOM_OFFSET)
    return struct_bytes({**fields, _METADATA: ThriftField(_METADATA, STRUCT, value)}.values())


def _group_bytes(fields: dict[int, ThriftField], chunks: list[_Chunk], visible: list[bool]) -> bytes:
    rest = list(compress(chunks, visible))
    entries = {number: fields[number] for number in sorted(fields.keys() & _GROUP_FIELDS.keys())}
    entries[_COLUMNS] = ThriftField(_COLUMNS, LIST, list_bytes(STRUCT, [chunk.value for chunk in rest]))
    entries[_TOTAL_UNCOMPRESSED] = _total(sum(chunk.plain_bytes for chunk in rest), _TOTAL_UNCOMPRESSED)
    if _TOTAL_COMPRESSED in entries:
        entries[_TOTAL_COMPRESSED] = _total(sum(chunk.page_bytes for chunk in rest), _TOTAL_COMPRESSED)
    if _SORTING in entries:
        sorting = _sorting_columns(entries.pop(_SORTING).value, visible)
        if sorting:
            entries[_SORTING] = ThriftField(_SORTING, LIST, list_bytes(STRUCT, sorting))
    return struct_bytes(entries[number] for number in sorted(entries))


def _total(number: int, place: int) -> ThriftField:
    return ThriftField(place, I64, integer_bytes(number))


def _sorting_columns(value: bytes, visible: list[bool]) -> list[bytes]:
    """The columns that order the rows, up to the first that does not stay: what follows it is no order of all rows."""
    reader = Reader(value)
    kind, count = reader.list_header()
    if kind != STRUCT and count:
        raise InvalidFooter("the sorting columns are no list of structs")
    columns = []
    for _ in range(count):
        start = reader.position
        place = _number(reader.numbers()[0], _SORTING_COLUMN)
        if place >= len(visible):
            raise InvalidFooter(f"a row group is sorted by column {place} of {len(visible)}")
        if not visible[place]:
            break
        number = integer_bytes(sum(visible[:place]))
        fields = {each.id: each for each in Reader(value, start).fields()}
        fields[_SORTING_COLUMN] = ThriftField(_SORTING_COLUMN, I32, number)
        columns.append(struct_bytes(fields.values()))
    return columns


def _check_group(fields: Mapping[int, ThriftField]) -> None:
    if not fields.keys() >= _GROUP_REQUIRED:
        raise InvalidFooter("a row group lacks its columns, its size or its number of rows")
    if any(_GROUP_FIELDS.get(number, field.type) != field.type for number, field in fields.items()):
        raise InvalidFooter("a field of a row group has another type")


def _number(numbers: Mapping[int, int], place: int) -> int:
    """A number that is not below zero."""
    number = numbers.get(place, -1)
    if number < 0:
        raise InvalidFooter(f"a column lacks the number {place}, or it is below zero")
    return number


def _range(numbers: Mapping[int, int], place: int, size: int) -> tuple[int, int]:
    start = _number(numbers, place)
    return start, start + _number(numbers, size)


def _union(visible: list[tuple[int, int]], hidden_ranges: list[tuple[int, int]], body_end: int) -> Ranges:
    """The visible ranges, adjacent ones as one. Raises InvalidFooter for one outside of the pages, or that overlaps."""
    spans = sorted([(*each, True) for each in visible if each[0] < each[1]])
    spans = sorted(spans + [(*each, False) for each in hidden_ranges if each[0] < each[1]])
    if spans[-1][1] > body_end:
        raise InvalidFooter("a column is not within the pages of the file")
    union: list[tuple[int, int]] = []
    for (_, end, _), (start, _, _) in pairwise(spans):
        if start < end:
            raise InvalidFooter("columns of the file overlap")
    for start, end, is_visible in spans:
        if is_visible and union and union[-1][1] == start:
            union[-1] = (union[-1][0], end)
        elif is_visible:
            union.append((start, end))
    return tuple(union)
