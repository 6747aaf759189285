"""CSV rows to Arrow: RFC 4180, UTF-8, with a header line that names columns of the schema in any order.

An unquoted empty cell is null, a quoted one ("") the empty string. Cells are written as `texts` says; lists,
structs and maps are JSON inside the cell. Spaces belong to it. Lines end with LF or CRLF. Blank lines are
skipped, but where there is only one column a blank line is a row that holds null. A UTF-8 byte order mark, as
spreadsheets write it, is skipped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from app.lake.errors import BodyTooLarge, FieldError, MalformedBody
from app.lake.rows.compiled import (
    FAST_PATH_FAULTS,
    CompiledSchema,
    Tally,
    assemble_values,
    compile_schema,
    quotation_marks,
    refuse_many_values,
    value_decoder,
)
from app.lake.rows.exact import read_cell
from app.lake.rows.faults import (
    ERRORS_COUNTED_MAX,
    Faults,
    Origin,
    below,
    malformed,
    missing_field,
    shown,
    unknown_field,
)
from app.lake.rows.json_rows import collect
from app.lake.rows.texts import parse_texts
from app.lake.schema import Schema
from app.lake.types import DataType, List, Map, Struct

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_QUOTE: Final = 0x22
_LINE_FEED: Final = 0x0A
_CARRIAGE_RETURN: Final = 0x0D
_BEFORE_OPENING: Final = np.frombuffer(b',\n"', dtype=np.uint8)
_AFTER_CLOSING: Final = np.frombuffer(b',\r\n"', dtype=np.uint8)
_Octets = npt.NDArray[np.uint8]
HEADER_BYTES_MAX: Final = 1 << 20
# Arrow's CSV reader counts the bytes of a block in 32 bits.
PIECE_BYTES_MAX: Final = (1 << 31) - 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The columns of a CSV in their order, and how many bytes the header line takes."""

    names: tuple[str, ...]
    size_bytes: int


def decode_csv(data: bytes, schema: Schema, *, first_row: int = 0, pointer: str = "/rows") -> pa.Table:
    """The rows below the header line, in order; there may be none.

    `first_row`: the number of the first row, for the pointers of faults.
    Raises SchemaMismatch (pointers `{pointer}/{row}/{column}`), MalformedBody (`line`, `byte`), BodyTooLarge.
    """
    if not data:
        raise MalformedBody("the body is empty")
    header = read_header(data, schema, pointer)
    origin = Origin(
        pointer=pointer,
        row=first_row,
        line=1 + data.count(b"\n", 0, header.size_bytes),
        byte=header.size_bytes,
    )
    tables = iter_record_tables(data[header.size_bytes :], header, schema, origin)
    return collect(tables, schema, Faults())


def read_header(data: bytes, schema: Schema, pointer: str = "/rows") -> Header:
    """The header line at the start of `data`, checked. Raises SchemaMismatch, MalformedBody."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise MalformedBody("the body starts with a UTF-16 byte order mark; send UTF-8", line=1, byte=0)
    size_bytes = record_end(data[:HEADER_BYTES_MAX])
    if size_bytes is None:
        if len(data) > HEADER_BYTES_MAX:
            raise MalformedBody(f"the header line is longer than {HEADER_BYTES_MAX} bytes", line=1, byte=0)
        size_bytes = len(data)
    line = data[:size_bytes].removeprefix(_BYTE_ORDER_MARK)
    _check_quotes(line, Origin())
    try:
        names = next(csv.reader(io.StringIO(line.decode("utf-8"), newline=""), strict=True), [])
    except UnicodeDecodeError as fault:
        raise MalformedBody(
            f"the header line is invalid UTF-8: {fault.reason}", line=1, byte=fault.start
        ) from None
    except csv.Error as fault:
        raise MalformedBody(f"the header line cannot be read: {fault}", line=1, byte=0) from None
    if not names:
        raise MalformedBody("the first line is empty; it must name the columns", line=1, byte=0)
    _check_header(names, compile_schema(schema), pointer)
    return Header(names=tuple(names), size_bytes=size_bytes)


def iter_record_tables(data: bytes, header: Header, schema: Schema, origin: Origin) -> Iterator[pa.Table]:
    """The rows of whole records that begin at `origin` of an input, below the header, in steps.

    Raises SchemaMismatch at the first step that is at fault; MalformedBody, BodyTooLarge.
    """
    step_rows = compile_schema(schema).step_rows
    ends = _record_ends(data)
    cuts = [0, *map(int, ends[step_rows - 1 :: step_rows])]
    if cuts[-1] != len(data):
        cuts.append(len(data))
    for start, end in pairwise(cuts):
        table = _decode_records(data[start:end], header, schema, origin)
        yield table
        origin = msgspec.structs.replace(
            origin,
            row=origin.row + table.num_rows,
            line=origin.line + data.count(b"\n", start, end),
            byte=origin.byte + end - start,
        )


def _decode_records(data: bytes, header: Header, schema: Schema, origin: Origin) -> pa.Table:
    if len(data) > PIECE_BYTES_MAX:
        raise BodyTooLarge(f"one piece of CSV may have {PIECE_BYTES_MAX} bytes", limit_bytes=PIECE_BYTES_MAX)
    compiled = compile_schema(schema)
    _check_quotes(data, origin)
    cells = _read_cells(data, header, origin)
    rows = len(next(iter(cells.values())))
    columns: list[pa.Array] = []
    found: list[tuple[int, FieldError]] = []
    for field in compiled.arrow:
        if field.name in cells:
            column = _Column(field=field, compiled=compiled, cells=cells[field.name], origin=origin)
            columns.append(column.values(found))
        else:
            columns.append(pa.nulls(rows, field.type))
    faults = Faults()
    # Found column by column, told row by row; the sort keeps the order of columns within a row.
    for _, error in sorted(found, key=lambda each: each[0]):
        faults.add(error.pointer, error.detail)
    faults.raise_if_any()
    return pa.Table.from_arrays(columns, schema=compiled.arrow)


def record_end(data: bytes, *, last: bool = False) -> int | None:
    """The position after the first (or last) line end that is outside quotes; None if there is none."""
    ends = _record_ends(data)
    return int(ends[-1 if last else 0]) if len(ends) else None


def _record_ends(data: bytes) -> npt.NDArray[np.intp]:
    """The positions after the line ends that are outside quotes."""
    octets = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(octets == _LINE_FEED)
    return ends[_outside_quotes(octets, ends)] + 1


def _outside_quotes(octets: _Octets, positions: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Which of the positions follow an even number of quotation marks."""
    quotes = np.flatnonzero(octets == _QUOTE)
    outside: npt.NDArray[np.bool_] = np.searchsorted(quotes, positions) % 2 == 0
    return outside


def _check_quotes(data: bytes, origin: Origin) -> None:
    """Refuses quotes and returns where RFC 4180 has none; Arrow would guess. Raises MalformedBody."""
    octets = np.frombuffer(data, dtype=np.uint8)
    quotes = np.flatnonzero(octets == _QUOTE)
    if len(quotes):
        # Every other quote opens a cell or is the second of a pair that stands for one quotation mark.
        opening, closing = quotes[0::2], quotes[1::2]
        before, after = octets[opening[opening > 0] - 1], octets[closing[closing < len(octets) - 1] + 1]
        misplaced = np.concatenate(
            (
                opening[opening > 0][~np.isin(before, _BEFORE_OPENING)],
                closing[closing < len(octets) - 1][~np.isin(after, _AFTER_CLOSING)],
            )
        )
        if len(misplaced):
            raise _malformed_at(
                data, int(misplaced.min()), origin, "a quotation mark inside a cell must be doubled"
            )
        if len(quotes) % 2:
            alone = quotes[0::2][np.diff(quotes, prepend=-2)[0::2] > 1]
            raise _malformed_at(data, int(alone[-1]), origin, "a quoted cell is never closed")
    if data.count(b"\r") != data.count(b"\r\n"):
        returns = np.flatnonzero(octets == _CARRIAGE_RETURN)
        returns = returns[_outside_quotes(octets, returns)]
        followed = octets[np.minimum(returns + 1, len(octets) - 1)] == _LINE_FEED
        if not followed.all():
            where = int(returns[~followed][0])
            raise _malformed_at(
                data, where, origin, "a carriage return outside quotes must be followed by a line feed"
            )


def _malformed_at(data: bytes, position: int, origin: Origin, reason: str) -> MalformedBody:
    line, byte = origin.line + data.count(b"\n", 0, position), origin.byte + position
    return MalformedBody(f"line {line}, byte {byte}: {reason}", line=line, byte=byte)


def _check_header(names: list[str], compiled: CompiledSchema, pointer: str) -> None:
    faults = Faults()
    for number, name in enumerate(names):
        if name not in compiled.types:
            faults.add(
                pointer, f"column {number + 1} of the header line: {unknown_field(name, compiled.types)}"
            )
        elif name in names[:number]:
            faults.add(
                pointer, f"column {number + 1} of the header line: {shown(name)} appears more than once"
            )
        if faults.full:
            break
    for name, data_type in compiled.types.items():
        if name in compiled.required and name not in names:
            faults.add(pointer, f"the header line lacks a column: {missing_field(name, str(data_type))}")
    faults.raise_if_any()


def _read_cells(data: bytes, header: Header, origin: Origin) -> dict[str, pa.BinaryArray]:
    """The cells as they were written, by column. Raises SchemaMismatch for rows of another width."""
    faults = Faults()

    def refuse_row(row: pacsv.InvalidRow) -> str:
        pointer = below(origin.pointer, origin.row + row.number - 1)
        faults.add(
            pointer, f"expected {row.expected_columns} cells, as in the header line, got {row.actual_columns}"
        )
        return "error" if faults.full else "skip"

    skips_blank_lines = len(header.names) > 1
    if not data.strip(b"\r\n"):
        # Arrow takes input without a cell for an error.
        rows = 0 if skips_blank_lines else data.count(b"\n")
        return {name: pa.nulls(rows, pa.binary()) for name in header.names}
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            # One block, one thread: only so does the reader number the rows.
            read_options=pacsv.ReadOptions(
                use_threads=False, column_names=header.names, block_size=len(data) + 1
            ),
            parse_options=pacsv.ParseOptions(
                newlines_in_values=True,
                ignore_empty_lines=skips_blank_lines,
                invalid_row_handler=refuse_row,
            ),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(header.names, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
                check_utf8=False,
            ),
        )
    except pa.ArrowInvalid as fault:
        faults.raise_if_any()
        raise malformed("the CSV cannot be read", fault) from None
    faults.raise_if_any()
    return {name: _whole(table.column(name)) for name in header.names}


def _whole(column: pa.ChunkedArray) -> pa.BinaryArray:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays([pa.array([], column.type), *column.chunks])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """The cells of one column as they were written, and what they must hold."""

    field: pa.Field
    compiled: CompiledSchema
    cells: pa.BinaryArray
    origin: Origin

    @property
    def data_type(self) -> DataType:
        return self.compiled.types[self.field.name]

    def values(self, found: list[tuple[int, FieldError]]) -> pa.Array:
        """The values; where some cell does not fit, nulls, and the faults with their rows go to `found`."""
        if self.field.nullable or not self.cells.null_count:
            try:
                array = self._at_once()
            except FAST_PATH_FAULTS:
                array = None
            if array is not None:
                return array
        return self._one_by_one(found)

    def _at_once(self) -> pa.Array | None:
        if not isinstance(self.data_type, List | Map | Struct):
            return parse_texts(pc.cast(self.cells, pa.string()), self.data_type)
        cells = self.cells.to_pylist()
        refuse_many_values(b"".join(cell for cell in cells if cell is not None), self.compiled)
        decoder = value_decoder(self.data_type)
        if decoder is None:
            return None
        tally = Tally()
        values = [None if cell is None else decoder.decode(cell) for cell in cells]
        array = assemble_values(values, self.data_type, tally)
        marks = sum(quotation_marks(cell) for cell in cells if cell is not None)
        return array if tally.accounts_for(marks) else None

    def _one_by_one(self, found: list[tuple[int, FieldError]]) -> pa.Array:
        values = []
        known = len(found)
        for row, cell in enumerate(self.cells.to_pylist()):
            faults = Faults()
            values.append(
                self._value(
                    cell, below(below(self.origin.pointer, self.origin.row + row), self.field.name), faults
                )
            )
            found.extend((row, error) for error in faults.listed)
            if len(found) - known >= ERRORS_COUNTED_MAX:
                break
        return (
            pa.nulls(len(self.cells), self.field.type)
            if len(found) > known
            else pa.array(values, self.field.type)
        )

    def _value(self, cell: bytes | None, pointer: str, faults: Faults) -> Any:
        if cell is None:
            if not self.field.nullable:
                faults.add(pointer, missing_field(self.field.name, str(self.data_type)))
            return None
        try:
            text = cell.decode("utf-8")
        except UnicodeDecodeError as fault:
            return faults.add(pointer, f"expected {self.data_type}, got invalid UTF-8: {fault.reason}")
        return read_cell(text, self.data_type, pointer, faults)
