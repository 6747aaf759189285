"""The pages of a Parquet file by their headers, which are read without decompressing them.

PyArrow shows no headers of pages, and reading some damaged footers with it ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from app.kernel.codecs.arrow.thrift import CompactReader
from app.kernel.codecs.parts import PART_BYTES_MIN, LargePart
from app.kernel.format.rows.formats import Source

# A page decompressed, and its values in an array that grows while it is filled.
_MEMORY_OF_PAGE: Final = 3
# Of a column. Pages have about a megabyte.
_PAGES_MAX: Final = 10_000
_HEADER_BYTES: Final = 1 << 10
# A header may have the least and the greatest value of its page.
_HEADER_BYTES_MAX: Final = 32 << 20
_END_BYTES: Final = 8
# Ids of fields, in the order of their structs in the specification of Parquet.
_SCHEMA, _ROW_GROUPS = 2, 4
_COLUMNS, _GROUP_ROWS = 1, 3
_METADATA = 3
_PATH, _UNCOMPRESSED, _COMPRESSED, _DATA_OFFSET, _DICTIONARY_OFFSET = 3, 6, 7, 9, 11
_PAGE_UNCOMPRESSED, _PAGE_COMPRESSED, _PAGE, _DICTIONARY, _PAGE_V2 = 2, 3, 5, 7, 8
_VALUES, _ROWS_V2 = 1, 3


def large_pages(source: Source, row_group: int, first_row: int, flat: frozenset[str]) -> Iterator[LargePart]:
    """The pages of the columns of a row group with more than 64 MiB, as far as the headers can be read.

    `first_row`: of the row group. `flat`: the paths of columns without lists: each value is that of a row.
    """
    try:
        group = _footer(source)[_ROW_GROUPS][row_group]
        rows = _number(group, _GROUP_ROWS)
        for column in group[_COLUMNS]:
            chunk = column[_METADATA]
            if _number(chunk, _UNCOMPRESSED) > PART_BYTES_MIN:
                path = b".".join(chunk[_PATH]).decode(errors="replace")
                yield from _pages(source, chunk, path, first_row, rows, is_flat=path in flat)
    except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError):
        # What is damaged or lies is for the reader to refuse.
        return
    except OSError as fault:
        # Only errors of the system have a number.
        if fault.errno is not None:
            raise


def _footer(source: Source) -> dict[int, Any]:
    size = source.seek(0, 2)
    source.seek(size - _END_BYTES)
    footer_bytes = int.from_bytes(source.read(4), "little")
    source.seek(size - _END_BYTES - footer_bytes)
    return CompactReader(source.read(footer_bytes)).struct()


def _pages(
    source: Source, chunk: dict[int, Any], path: str, first_row: int, rows: int, *, is_flat: bool
) -> Iterator[LargePart]:
    position = _number(chunk, _DATA_OFFSET)
    if _DICTIONARY_OFFSET in chunk and 0 < _number(chunk, _DICTIONARY_OFFSET) < position:
        position = _number(chunk, _DICTIONARY_OFFSET)
    end = position + _number(chunk, _COMPRESSED)
    row = first_row
    for _ in range(_PAGES_MAX):
        if position >= end:
            return
        page, header_bytes = _header(source, position)
        position += header_bytes + max(_number(page, _PAGE_COMPRESSED), 0)
        page_rows = None
        if _PAGE_V2 in page:
            values, page_rows = _number(page[_PAGE_V2], _VALUES), _number(page[_PAGE_V2], _ROWS_V2)
        elif _PAGE in page:
            values = _number(page[_PAGE], _VALUES)
            page_rows = values if is_flat else None
        else:
            values = _number(page.get(_DICTIONARY, {_VALUES: 0}), _VALUES)
        size_bytes = _number(page, _PAGE_UNCOMPRESSED)
        yield LargePart(
            name=f"a page of column {path!r}",
            size_bytes=size_bytes,
            memory_bytes=_MEMORY_OF_PAGE * size_bytes,
            values=values,
            first_row=row,
            rows=rows - (row - first_row) if page_rows is None else page_rows,
        )
        row += page_rows or 0


def _number(fields: dict[int, Any], field: int) -> int:
    """Raises LookupError without the field, TypeError if it is no number."""
    number = fields[field]
    if not isinstance(number, int):
        raise TypeError(f"field {field} is no number")
    return number


def _header(source: Source, position: int) -> tuple[dict[int, Any], int]:
    """The header of the page at this place, and its size. Raises IndexError if there is none."""
    size = _HEADER_BYTES
    while True:
        source.seek(position)
        reader = CompactReader(source.read(size))
        try:
            return reader.struct(), reader.position
        except IndexError:
            size *= 32
            if size > _HEADER_BYTES_MAX:
                raise
