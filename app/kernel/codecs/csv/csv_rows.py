"""CSV rows to Arrow: RFC 4180, UTF-8, with a header line that names columns of the schema in any order.

An unquoted empty cell is null, a quoted one ("") the empty string. Cells have the text form of their type; lists,
structs and maps are JSON inside the cell. Spaces are part of a cell. Lines end with LF or CRLF. Blank lines are
skipped; with only one column, a blank line is a row with null. A UTF-8 byte order mark, as spreadsheets write it, is
skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from app.kernel.codecs.arrow.flat_form import FlatForm, flat_form
from app.kernel.codecs.compiled import (
    FAST_PATH_FAULTS,
    CompiledSchema,
    Tally,
    assemble_values,
    refuse_many_values,
    value_decoder,
)
from app.kernel.codecs.csv.csv_header import Header, malformed_at, read_header
from app.kernel.codecs.csv.csv_records import (
    QuoteFault,
    quote_fault,
    record_end,
    record_ends,
    record_spans,
    sound_runs,
)
from app.kernel.codecs.faults import (
    NOT_UTF8,
    Faults,
    Origin,
    below,
    malformed,
    missing_field,
    unknown_field,
)
from app.kernel.codecs.json.json_rows import collect
from app.kernel.codecs.json.row_reader import add_null_member
from app.kernel.codecs.record_errors import BadRecords, RecordErrors, record_errors_for
from app.kernel.codecs.value_parser import read_cell
from app.kernel.format.errors import BodyTooLarge, MalformedBody, RowTooLarge
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, EXCERPT_BYTES, RowLimits
from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import DataType, FlatType

# Arrow's CSV reader counts the bytes of a block in 32 bits.
PIECE_BYTES_MAX: Final = (1 << 31) - 2


def decode_csv(
    data: bytes,
    schema: Schema,
    *,
    first_row: int = 0,
    pointer: str = "/rows",
    bad_records: BadRecords | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    ignored_fields: set[str] | None = None,
) -> pa.Table:
    """The rows below the header line, in order, possibly none.

    `first_row`: the number of the first row, for the pointers of faults. `bad_records`: receives the records that do
    not fit; without it the first of them rejects the input. `ignored_fields`: receives the names of unknown columns,
    which are ignored if their cells are null. Raises SchemaMismatch (pointers `{pointer}/{row}/{column}`),
    MalformedBody (`line`, `byte`), BodyTooLarge, RowTooLarge, TooManyRows.
    """
    if not data:
        raise MalformedBody("the body is empty")
    header = read_header(data, schema, pointer)
    origin = Origin(row=first_row, line=1 + data.count(b"\n", 0, header.size_bytes), byte=header.size_bytes)
    record_errors = record_errors_for(bad_records, pointer, limits, ignored_fields)
    records = Records(
        header=header, schema=schema, record_errors=record_errors, origin=origin, pointer=pointer
    )
    return collect(records.tables(data[header.size_bytes :], last=True), schema, record_errors)


@dataclass(slots=True, kw_only=True)
class Records:
    """Reads the records below a header line, one piece of the input after the other.

    `pointer`: that of the rows, for the faults of columns. `origin`: the start of the next piece. `rest`: the end of
    the last piece, which may be the start of a record. `in_large`: whether the next piece starts inside a record that
    was left out because it is too large.
    """

    header: Header
    schema: Schema
    record_errors: RecordErrors
    origin: Origin
    pointer: str = "/rows"
    rest: bytes = b""
    in_large: bool = False

    def tables(self, text: bytes, *, last: bool) -> Iterator[pa.Table]:
        """The good rows of the records at the start of `text`, in steps. The others are reported to `record_errors`.

        `last`: the text is the end of the input. Raises MalformedBody, BodyTooLarge, RowTooLarge.
        """
        bytes_max = self.record_errors.limits.row_bytes_max
        if self.in_large:
            text = self._after_large(text)
        cut = len(text) if last else record_end(text, last=True) or 0
        fault = quote_fault(text[:cut])
        if fault is None:
            if len(text) - cut <= bytes_max:
                yield from self._sound(text[:cut])
                self.rest = text[cut:]
                return
            unreadable = None
        else:
            unreadable = malformed_at(text, fault.position, self.origin, fault.reason)
        cut = 0
        for run in sound_runs(text, last=last, record_bytes_max=bytes_max):
            cut = run.end
            if run.fault is None:
                yield from self._sound(text[run.start : cut])
            else:
                self._leave_out(text[run.start : cut], run.fault, unreadable)
        if len(text) - cut > bytes_max:
            # One line, whose end has not been read.
            self._leave_out_large(text[cut:])
            self.in_large, cut = True, len(text)
        self.rest = text[cut:]

    def _after_large(self, text: bytes) -> bytes:
        """The text behind the line with which it starts."""
        end = text.find(b"\n") + 1
        self.in_large = not end
        self._advance(text[:end] if end else text, 0)
        return text[end:] if end else b""

    def _too_large(self) -> RowTooLarge:
        """The error for the next record, which is too large, and whose end may be unknown."""
        row = self.origin.row
        return self.record_errors.limits.refusal(
            row, below("/rows", row), self.origin.line, hint="; or a quoted cell is never closed"
        )

    def _leave_out(self, line: bytes, fault: QuoteFault, unreadable: MalformedBody | None) -> None:
        faults = Faults()
        faults.add("", f"{fault.reason} (at byte {fault.position} of the record)")
        self.record_errors.add(
            self.origin.row,
            faults,
            partial(line.rstrip, b"\r\n"),
            header=self.header.line,
            unreadable=unreadable or self._too_large(),
        )
        self._advance(line, 1)

    def _sound(self, data: bytes) -> Iterator[pa.Table]:
        ends = np.append(record_ends(data), len(data))
        start = 0
        for number in np.flatnonzero(np.diff(ends, prepend=0) > self.record_errors.limits.row_bytes_max):
            first, end = int(ends[number - 1]) if number else 0, int(ends[number])
            if first > start:
                yield from self._steps(data[start:first])
            self._leave_out_large(data[first:end])
            start = end
        if start == 0 or start < len(data):
            yield from self._steps(data[start:])

    def _leave_out_large(self, record: bytes) -> None:
        row, line = self.origin.row, self.origin.line
        self.record_errors.add_too_large(row, partial(_excerpt, record), header=self.header.line, line=line)
        self._advance(record, 1)

    def _steps(self, data: bytes) -> Iterator[pa.Table]:
        step_rows = flat_form(self.schema, header=self.header.names).compiled_schema.step_rows
        cuts = [0, *map(int, record_ends(data)[step_rows - 1 :: step_rows])]
        if cuts[-1] != len(data):
            cuts.append(len(data))
        for start, end in pairwise(cuts):
            piece = data[start:end]
            before = self.record_errors.count
            table = self._decode(piece)
            yield table
            self._advance(piece, table.num_rows + self.record_errors.count - before)

    def _advance(self, data: bytes, rows: int) -> None:
        self.origin = Origin(
            row=self.origin.row + rows,
            line=self.origin.line + data.count(b"\n"),
            byte=self.origin.byte + len(data),
        )

    def _decode(self, data: bytes) -> pa.Table:
        if len(data) > PIECE_BYTES_MAX:
            raise BodyTooLarge(
                f"one piece of CSV may have {PIECE_BYTES_MAX} bytes", limit_bytes=PIECE_BYTES_MAX
            )
        form = flat_form(self.schema, header=self.header.names)
        cells, bad = _read_cells(data, self.header, self.record_errors.faults_max)
        numbers = np.arange(len(next(iter(cells.values()))) + len(bad))
        if bad:
            numbers = np.delete(numbers, list(bad))
        faults_by_row: dict[int, Faults] = {}
        columns: list[pa.Array] = []
        for field in form.compiled_schema.arrow:
            if field.name in cells:
                column = _CsvColumn(
                    field=field,
                    compiled_schema=form.compiled_schema,
                    cells=cells[field.name],
                    faults_max=self.record_errors.faults_max,
                    ignored_fields=self.record_errors.ignored_fields,
                )
                columns.append(column.values(faults_by_row))
            else:
                columns.append(pa.nulls(len(numbers), field.type))
        table = pa.Table.from_arrays(columns, schema=form.compiled_schema.arrow)
        table, unavailable = form.available(table)
        for row, pointer, reason in unavailable:
            faults_by_row.setdefault(row, Faults()).add(pointer, reason)
        form.add_faults(table, faults_by_row, self.record_errors.faults_max)
        self._ignore_unknown(cells, form, faults_by_row)
        if faults_by_row:
            good = np.ones(len(numbers), dtype=np.bool_)
            good[list(faults_by_row)] = False
            table = table.filter(pa.array(good))
            bad |= {int(numbers[row]): faults for row, faults in faults_by_row.items()}
        if bad:
            self._add_errors(data, bad)
        return form.rows(table)

    def _ignore_unknown(
        self, cells: dict[str, pa.BinaryArray], form: FlatForm, faults_by_row: dict[int, Faults]
    ) -> None:
        """Adds the faults of cells of columns that the schema does not have, unless they are null."""
        types = form.compiled_schema.types
        faulty_rows = list(faults_by_row)
        for number, name in enumerate(self.header.names, 1):
            if name in types or name in form.system:
                continue
            valid = cells[name].is_valid().to_numpy(zero_copy_only=False)
            good = np.ones(len(valid), dtype=np.bool_)
            good[faulty_rows] = False
            if (good & ~valid).any():
                self.record_errors.ignored_fields.add(name)
            reason = f"column {number} of the header line: {unknown_field(name, types)}"
            for row in np.flatnonzero(good & valid)[: self.record_errors.faults_max].tolist():
                faults_by_row.setdefault(row, Faults()).add(below("", name), reason)

    def _add_errors(self, data: bytes, bad: dict[int, Faults]) -> None:
        """Reports the bad records among those in `data`, which are numbered from 0."""
        spans = record_spans(data, blank_lines=len(self.header.names) == 1)
        line, counted = self.origin.line, 0
        for number in sorted(bad):
            start, end = spans[number]
            line += data.count(b"\n", counted, start)
            counted = start
            bad[number].locate(line)
            bad[number].locate_bytes(data[start:end], self.origin.byte + start)
            self.record_errors.add(
                self.origin.row + number,
                bad[number],
                partial(_without_line_end, data[start:end]),
                header=self.header.line,
            )


def _without_line_end(record: bytes) -> bytes:
    return record.removesuffix(b"\n").removesuffix(b"\r")


def _excerpt(record: bytes) -> bytes:
    """The start of a record that is too large. Its number of quotation marks is odd, so that it is no record."""
    if len(record) <= EXCERPT_BYTES:
        return _without_line_end(record)
    start = record[:EXCERPT_BYTES]
    return start if start.count(b'"') % 2 else start + b'"'


def _read_cells(
    data: bytes, header: Header, faults_max: int
) -> tuple[dict[str, pa.BinaryArray], dict[int, Faults]]:
    """The unparsed cells, by column, and the faults of records of another width, which are left out.

    All records are numbered from 0. At most `faults_max` faults are collected; then there are no cells.
    """
    bad: dict[int, Faults] = {}

    def leave_out(row: pacsv.InvalidRow) -> str:
        faults = Faults()
        counts = f"expected {row.expected_columns} cells, as in the header line, got {row.actual_columns}"
        advice = header.width_advice
        faults.add("", counts if advice is None else f"{counts}; {advice}")
        bad[row.number - 1] = faults
        return "error" if len(bad) >= faults_max else "skip"

    skips_blank_lines = len(header.names) > 1
    if not data.strip(b"\r\n"):
        # Arrow treats input without a cell as an error.
        rows = 0 if skips_blank_lines else data.count(b"\n")
        return {name: pa.nulls(rows, pa.binary()) for name in header.names}, bad
    if not data.endswith(b"\n"):
        # Arrow reads an empty last cell without a line end as quoted, if an earlier cell was quoted.
        data += b"\n"
    try:
        table = pacsv.read_csv(
            pa.BufferReader(data),
            # The reader numbers the rows only with one block and one thread.
            read_options=pacsv.ReadOptions(
                use_threads=False, column_names=header.names, block_size=len(data) + 1
            ),
            parse_options=pacsv.ParseOptions(
                newlines_in_values=True,
                ignore_empty_lines=skips_blank_lines,
                invalid_row_handler=leave_out,
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
        if len(bad) < faults_max:
            raise malformed("the CSV cannot be read", fault) from None
        return {name: pa.nulls(0, pa.binary()) for name in header.names}, bad
    return {name: _whole(table.column(name)) for name in header.names}, bad


def _whole(column: pa.ChunkedArray) -> pa.BinaryArray:
    return (
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays([pa.array([], column.type), *column.chunks])
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _CsvColumn:
    """The unparsed cells of one column, and their type. `ignored_fields`: see `decode_csv`."""

    field: pa.Field
    compiled_schema: CompiledSchema
    cells: pa.BinaryArray
    faults_max: int
    ignored_fields: set[str]

    @property
    def data_type(self) -> DataType:
        return self.compiled_schema.types[self.field.name]

    def values(self, faults_by_row: dict[int, Faults]) -> pa.Array:
        """The values. A cell that does not fit is null, and its fault is added to `faults_by_row`."""
        if self.field.nullable or not self.cells.null_count:
            try:
                array = self._decode_column()
            except FAST_PATH_FAULTS:
                array = None
            if array is not None:
                return array
        return self._one_by_one(faults_by_row)

    def _decode_column(self) -> pa.Array | None:
        if isinstance(self.data_type, FlatType):
            return self.data_type.parse(pc.cast(self.cells, pa.string()))
        cells = self.cells.to_pylist()
        refuse_many_values(b"".join(cell for cell in cells if cell is not None), self.compiled_schema)
        decoder = value_decoder(self.data_type)
        if decoder is None:
            return None
        tally = Tally()
        values = [None if cell is None else decoder.decode(cell) for cell in cells]
        array = assemble_values(values, self.data_type, tally)
        for path in self.compiled_schema.key_members_of(self.field.name):
            if pc.struct_field(array, list(path)).null_count:
                return None
        text = b"\n".join(cell for cell in cells if cell is not None)
        return array if tally.accounts_for(text) else None

    def _one_by_one(self, faults_by_row: dict[int, Faults]) -> pa.Array:
        values = []
        pointer = below("", self.field.name)
        count = 0
        for row, cell in enumerate(self.cells.to_pylist()):
            faults = Faults()
            value = self._value(cell, pointer, faults)
            values.append(None if faults.count else value)
            self.ignored_fields.update(faults.ignored_fields)
            if faults.count:
                faults_by_row.setdefault(row, Faults()).take("", faults)
                count += faults.count
            if count >= self.faults_max:
                return pa.nulls(len(self.cells), self.field.type)
        return pa.array(values, self.field.type)

    def _value(self, cell: bytes | None, pointer: str, faults: Faults) -> Any:
        if cell is None:
            if not self.field.nullable:
                faults.add(pointer, missing_field(self.field.name, str(self.data_type)))
            return None
        try:
            text = cell.decode("utf-8")
        except UnicodeDecodeError as fault:
            return faults.add(
                pointer,
                f"expected {self.data_type}, {NOT_UTF8}: {fault.reason}; send UTF-8",
            )
        value = read_cell(text, self.data_type, pointer, faults)
        for path in self.compiled_schema.key_members_of(self.field.name):
            if not faults.count:
                add_null_member(value, pointer, path, faults)
        return value
