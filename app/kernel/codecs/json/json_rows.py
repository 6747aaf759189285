"""JSON and NDJSON rows to Arrow: many rows at once, and one by one only if that fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa

from app.kernel.codecs.compiled import TABLE_VALUES_MAX, compile_schema, refuse_many_values, too_many_values
from app.kernel.codecs.faults import (
    GZIP_MAGIC,
    GZIP_WITHOUT_ENCODING,
    Faults,
    Origin,
    malformed_row,
    mismatch,
)
from app.kernel.codecs.json.changelog_rows import RecordReader, reader_of
from app.kernel.codecs.record_errors import BadRecords, RecordErrors, checked_rows, record_errors_for
from app.kernel.codecs.value_parser import describe, parse_json, parse_json_array
from app.kernel.format.errors import MalformedBody
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, EXCERPT_BYTES, RowLimits
from app.kernel.format.schema.schema import Schema

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BLANKS: Final = b" \t\r"
# After a failure the good rows around the bad ones still take the fast path, in smaller and smaller pieces.
_PIECE_ROWS_MAX: Final = 1_024
_PIECE_ROWS_MIN: Final = 64
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])


def decode_json_rows(
    raw: bytes,
    schema: Schema,
    *,
    pointer: str = "/source/rows",
    bad_records: BadRecords | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    ignored_fields: set[str] | None = None,
) -> pa.Table:
    """The rows of a JSON array of row objects, in order; `raw` is the text of the array, which may be `[]`.

    `bad_records`: receives the rows that do not fit; without it the first of them rejects the input. `ignored_fields`:
    receives the names of unknown members, which are ignored where they are null. Raises SchemaMismatch (pointers
    `{pointer}/{row}/{field}`), MalformedBody (facts `line`, `byte`), BodyTooLarge (over 16 million values, absent ones
    included), RowTooLarge, TooManyRows.
    """
    refuse_nothing(raw)
    record_errors = record_errors_for(bad_records, pointer, limits, ignored_fields)
    return collect(iter_array_tables(raw, schema, pointer, record_errors), schema, record_errors)


def decode_ndjson(
    data: bytes,
    schema: Schema,
    *,
    first_row: int = 0,
    pointer: str = "/rows",
    bad_records: BadRecords | None = None,
    limits: RowLimits = DEFAULT_LIMITS,
    ignored_fields: set[str] | None = None,
) -> pa.Table:
    """The rows of newline-delimited JSON, one object a line. Blank lines are skipped and are not rows.

    `first_row`: the number of the first row, for the pointers of faults. `bad_records`, `ignored_fields`: as in
    `decode_json_rows`.
    Raises SchemaMismatch (pointers `{pointer}/{row}/{field}`), MalformedBody (facts `row`, `line`, `byte`),
    BodyTooLarge (over 16 million values, absent ones included), RowTooLarge, TooManyRows.
    """
    refuse_nothing(data)
    record_errors = record_errors_for(bad_records, pointer, limits, ignored_fields)
    return collect(
        iter_line_tables(data, schema, Origin(row=first_row), record_errors), schema, record_errors
    )


def iter_array_tables(
    raw: bytes, schema: Schema, pointer: str, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    """The good rows of an array in steps. The others are reported to `record_errors`."""
    reader = reader_of(schema)
    try:
        rows = _ARRAY.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        yield _array_exactly(raw, reader, pointer, record_errors)
        return
    yield from _iter_steps(rows, _locate_elements(raw, rows), reader, record_errors)


def iter_line_tables(
    data: bytes, schema: Schema, origin: Origin, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    """The good rows of whole lines that start at `origin`, in steps. The others are reported to `record_errors`."""
    if origin.byte == 0:
        _refuse_byte_order_mark(data)
    lines = data.split(b"\n")
    rows = [line for line in lines if line.strip(_BLANKS)]
    yield from _iter_steps(rows, _locate(lines, origin), reader_of(schema), record_errors)


def iter_text_tables(
    texts: Sequence[bytes], first_row: int, schema: Schema, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    """The good rows of JSON texts of one row each, in steps. The others are reported to `record_errors`."""
    with_origins = ((Origin(row=first_row + number), text) for number, text in enumerate(texts))
    yield from _iter_steps(texts, with_origins, reader_of(schema), record_errors)


def _iter_steps(
    rows: Sequence[bytes | msgspec.Raw],
    with_origins: Iterator[tuple[Origin, bytes]],
    reader: RecordReader,
    record_errors: RecordErrors,
) -> Iterator[pa.Table]:
    """The rows of JSON texts in steps. `with_origins`: the same texts with their origins; it is rarely read."""
    position = 0
    for start in range(0, len(rows), reader.compiled_schema.step_rows):
        step = list(map(bytes, rows[start : start + reader.compiled_schema.step_rows]))
        table = _decode_batch(step, reader, record_errors)
        if table is None:
            step_texts = list(islice(with_origins, start - position, start - position + len(step)))
            position = start + len(step)
            table = _joined(_piecewise(step_texts, reader, record_errors)).combine_chunks()
        yield table
        if record_errors.full:
            return


def _locate(lines: Iterable[bytes], origin: Origin) -> Iterator[tuple[Origin, bytes]]:
    """The lines that are rows, each with its origin."""
    row, byte = origin.row, origin.byte
    for number, line in enumerate(lines):
        if line.strip(_BLANKS):
            yield Origin(row=row, line=origin.line + number, byte=byte), line
            row += 1
        byte += len(line) + 1


def _locate_elements(raw: bytes, elements: Iterable[msgspec.Raw]) -> Iterator[tuple[Origin, bytes]]:
    """The elements of the array, each with its origin."""
    line, end = 1, 0
    for row, text in enumerate(map(bytes, elements)):
        # Only blanks, a comma or the bracket lie between two elements, so the match is the element itself.
        byte = raw.index(text, end)
        line += raw.count(b"\n", end, byte)
        yield Origin(row=row, line=line, byte=byte), text
        line += text.count(b"\n")
        end = byte + len(text)


def collect(tables: Iterable[pa.Table], schema: Schema, record_errors: RecordErrors) -> pa.Table:
    """All steps as one table. Raises SchemaMismatch if bad records reject it, BodyTooLarge, TooManyRows."""
    compiled_schema = compile_schema(schema)
    parts = []
    values = 0
    for table in checked_rows(tables, record_errors):
        values += table.num_rows * compiled_schema.leaves
        if values > TABLE_VALUES_MAX:
            raise too_many_values()
        parts.append(table)
    return parts[0] if len(parts) == 1 else _joined([compiled_schema.arrow.empty_table(), *parts])


def _joined(tables: Iterable[pa.Table]) -> pa.Table:
    """One table of the rows. Not all tables of changes have the column of kept fields."""
    return pa.concat_tables(tables, promote_options="default")


def count_rows(data: bytes) -> int:
    """The number of rows in NDJSON lines, good or bad."""
    return sum(1 for line in data.split(b"\n") if line.strip(_BLANKS))


def refuse_nothing(data: bytes) -> None:
    """Raises MalformedBody for an empty text, or one that starts with a byte order mark."""
    _refuse_byte_order_mark(data)
    if not data or data.isspace():
        raise MalformedBody("the body is empty")


def _refuse_byte_order_mark(data: bytes) -> None:
    if data.startswith(_BYTE_ORDER_MARK) or data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise MalformedBody("the body starts with a byte order mark; send plain UTF-8", line=1, byte=0)


def _piecewise(
    rows: Sequence[tuple[Origin, bytes]], reader: RecordReader, record_errors: RecordErrors
) -> Iterator[pa.Table]:
    """The good rows of texts of which some must be parsed one by one; at least one table."""
    size = max(1, min(_PIECE_ROWS_MAX, len(rows) // 2))
    for start in range(0, len(rows), size):
        piece = rows[start : start + size]
        table = _decode_batch([text for _, text in piece], reader, record_errors)
        if table is not None:
            yield table
        elif len(piece) > _PIECE_ROWS_MIN:
            yield from _piecewise(piece, reader, record_errors)
        else:
            yield reader.table(_read_texts(piece, reader, record_errors))
        if record_errors.full:
            break


def _decode_batch(
    texts: Sequence[bytes], reader: RecordReader, record_errors: RecordErrors
) -> pa.Table | None:
    """The rows of JSON texts; None if any of them does not fit or is too large."""
    if max(map(len, texts)) > record_errors.limits.row_bytes_max:
        return None
    return reader.decode_batch(texts, record_errors.ignored_fields)


def _excerpt(text: bytes) -> bytes:
    """The start of a text that is too large to be kept. The start of an object is no JSON."""
    return text[:EXCERPT_BYTES].strip(_BLANKS)


def _read_texts(
    rows: Iterable[tuple[Origin, bytes]], reader: RecordReader, record_errors: RecordErrors
) -> list[Any]:
    """The rows of the good records, in the form of `reader`."""
    good_rows = []
    for origin, text in rows:
        if len(text) > record_errors.limits.row_bytes_max:
            record_errors.add_too_large(origin.row, partial(_excerpt, text), line=origin.line)
            continue
        faults = Faults()
        unreadable = None
        try:
            contents = reader.read(parse_json(text.decode("utf-8")), faults)
        except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as fault:
            reason, byte = _unreadable(fault)
            faults.add("", f"{reason} (at byte {byte} of the record)")
            unreadable = malformed_row(origin, reason, byte, text)
        if not faults.count:
            good_rows.extend(contents)
            record_errors.ignored_fields.update(faults.ignored_fields)
            continue
        record_errors.add(origin.row, faults, partial(text.strip, _BLANKS), unreadable=unreadable)
        if record_errors.full:
            break
    return good_rows


def _unreadable(fault: UnicodeDecodeError | json.JSONDecodeError | RecursionError) -> tuple[str, int]:
    """The reason why a text is not JSON, and the position of the faulty byte."""
    match fault:
        case UnicodeDecodeError(object=text) if text.startswith(GZIP_MAGIC):
            return GZIP_WITHOUT_ENCODING, 0
        case UnicodeDecodeError():
            return f"invalid UTF-8: {fault.reason}", fault.start
        case json.JSONDecodeError():
            array = fault.doc.lstrip().startswith("[")
            hint = "; NDJSON is one object per line, so send an array as application/json" if array else ""
            return f"not JSON: {_lower(fault.msg)}{hint}", len(fault.doc[: fault.pos].encode("utf-8"))
        case _:
            return "the JSON is nested too deeply", 0


def _array_exactly(raw: bytes, reader: RecordReader, pointer: str, record_errors: RecordErrors) -> pa.Table:
    """The good rows of a text that msgspec rejects as a JSON array. Finds the reason."""
    refuse_many_values(raw, reader.compiled_schema)
    # Bytes that are not UTF-8 are kept, so that only the element with such bytes is bad.
    text = raw.decode("utf-8", "surrogateescape")
    good_rows = []
    try:
        for number, (value, element) in enumerate(parse_json_array(text)):
            octets = element.encode("utf-8", "surrogateescape")
            if len(octets) > record_errors.limits.row_bytes_max:
                record_errors.add_too_large(number, partial(_excerpt, octets))
                continue
            faults = Faults()
            unreadable = None
            try:
                octets.decode("utf-8")
            except UnicodeDecodeError as fault:
                faults.add("", f"invalid UTF-8: {fault.reason} (at byte {fault.start} of the record)")
                unreadable = _not_utf8(raw)
            contents = reader.read(value, faults) if unreadable is None else []
            if not faults.count:
                good_rows.extend(contents)
                record_errors.ignored_fields.update(faults.ignored_fields)
                continue
            record_errors.add(number, faults, partial(bytes, octets), unreadable=unreadable)
            if record_errors.full:
                break
    except json.JSONDecodeError as fault:
        byte = len(text[: fault.pos].encode("utf-8", "surrogateescape"))
        raise _not_utf8(raw) or _malformed_at(raw, byte, f"not JSON: {_lower(fault.msg)}") from None
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply") from None
    except TypeError:
        mismatch(pointer, f"expected an array of row objects, got {describe(parse_json(text))}")
    return reader.table(good_rows)


def _not_utf8(raw: bytes) -> MalformedBody | None:
    """The error for a text that is not UTF-8; None if it is."""
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        return _malformed_at(raw, fault.start, f"invalid UTF-8: {fault.reason}")
    return None


def _malformed_at(raw: bytes, byte: int, reason: str) -> MalformedBody:
    line = raw.count(b"\n", 0, byte) + 1
    return MalformedBody(f"line {line}, byte {byte}: {reason}", line=line, byte=byte)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
