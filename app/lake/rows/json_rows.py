"""JSON and NDJSON rows to Arrow: many rows at once, and one by one only where that fails."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
import pyarrow as pa

from app.lake.errors import MalformedBody
from app.lake.rows.compiled import (
    FAST_PATH_FAULTS,
    TABLE_VALUES_MAX,
    CompiledSchema,
    Tally,
    compile_schema,
    quotation_marks,
    refuse_many_values,
    too_many_values,
)
from app.lake.rows.exact import (
    Members,
    describe,
    distinct_members,
    parse_json,
    parse_json_array,
    read_value,
)
from app.lake.rows.faults import (
    Faults,
    Origin,
    below,
    malformed_row,
    mismatch,
    missing_field,
    null_field,
    unknown_field,
)
from app.lake.schema import Schema

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_BLANKS: Final = b" \t\r"
# After a failure the good rows around the bad ones still go through the fast path, in pieces of this many.
_PIECE_ROWS: Final = 1_000
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])


def decode_json_rows(raw: bytes, schema: Schema, *, pointer: str = "/source/rows") -> pa.Table:
    """The rows of a JSON array of row objects, in order; `raw` is the text of the array, which may be `[]`.

    Raises SchemaMismatch (pointers `{pointer}/{row}/{field}`), MalformedBody (facts `line`, `byte`),
    BodyTooLarge (over 16 million values, absent ones included).
    """
    refuse_nothing(raw)
    faults = Faults()
    return collect(iter_array_tables(raw, schema, pointer, faults), schema, faults)


def decode_ndjson(data: bytes, schema: Schema, *, first_row: int = 0, pointer: str = "/rows") -> pa.Table:
    """The rows of newline-delimited JSON, one object a line. Blank lines are skipped and are no rows.

    `first_row`: the number of the first row, for the pointers of faults.
    Raises SchemaMismatch (pointers `{pointer}/{row}/{field}`), MalformedBody (facts `row`, `line`, `byte`),
    BodyTooLarge (over 16 million values, absent ones included).
    """
    refuse_nothing(data)
    faults = Faults()
    return collect(
        iter_line_tables(data, schema, Origin(pointer=pointer, row=first_row), faults), schema, faults
    )


def iter_array_tables(raw: bytes, schema: Schema, pointer: str, faults: Faults) -> Iterator[pa.Table]:
    """The rows of an array in steps. Where any is wrong, `faults` says so and the tables are of no use."""
    compiled = compile_schema(schema)
    try:
        rows = _ARRAY.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        yield _array_exactly(raw, compiled, pointer, faults)
        return
    for start in range(0, len(rows), compiled.step_rows):
        lines = [bytes(row) for row in rows[start : start + compiled.step_rows]]
        table = _at_once(lines, compiled)
        if table is None:
            _require_utf8(raw)
            table = _piecewise(list(_locate(lines, Origin(pointer=pointer, row=start))), compiled, faults)
        yield table
        if faults.full:
            return


def iter_line_tables(data: bytes, schema: Schema, origin: Origin, faults: Faults) -> Iterator[pa.Table]:
    """The rows of whole lines that begin at `origin`, in steps; faults as in `iter_array_tables`."""
    if origin.byte == 0:
        _refuse_byte_order_mark(data)
    compiled = compile_schema(schema)
    lines = data.split(b"\n")
    rows = [line for line in lines if line.strip(_BLANKS)]
    located = _locate(lines, origin)
    passed = 0
    for start in range(0, len(rows), compiled.step_rows):
        step = rows[start : start + compiled.step_rows]
        table = _at_once(step, compiled)
        if table is None:
            table = _piecewise(
                list(islice(located, start - passed, start - passed + len(step))), compiled, faults
            )
            passed = start + len(step)
        yield table
        if faults.full:
            return


def _locate(lines: Iterable[bytes], origin: Origin) -> Iterator[tuple[Origin, bytes]]:
    """The lines that are rows, each with where it begins."""
    row, byte = origin.row, origin.byte
    for number, line in enumerate(lines):
        if line.strip(_BLANKS):
            yield Origin(pointer=origin.pointer, row=row, line=origin.line + number, byte=byte), line
            row += 1
        byte += len(line) + 1


def collect(tables: Iterable[pa.Table], schema: Schema, faults: Faults) -> pa.Table:
    """All steps as one table. Raises SchemaMismatch for the faults found, and BodyTooLarge."""
    compiled = compile_schema(schema)
    kept = []
    values = 0
    for table in tables:
        values += table.num_rows * compiled.leaves
        if values > TABLE_VALUES_MAX:
            raise too_many_values()
        kept.append(table)
    faults.raise_if_any()
    return kept[0] if len(kept) == 1 else pa.concat_tables([compiled.arrow.empty_table(), *kept])


def count_rows(data: bytes) -> int:
    """How many rows NDJSON lines hold, whether or not they are good."""
    return sum(1 for line in data.split(b"\n") if line.strip(_BLANKS))


def refuse_nothing(data: bytes) -> None:
    """Raises MalformedBody for text that holds nothing, or starts with a byte order mark."""
    _refuse_byte_order_mark(data)
    if not data or data.isspace():
        raise MalformedBody("the body is empty")


def _refuse_byte_order_mark(data: bytes) -> None:
    if data.startswith(_BYTE_ORDER_MARK) or data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise MalformedBody("the body starts with a byte order mark; send plain UTF-8", line=1, byte=0)


def _at_once(rows: Sequence[bytes], compiled: CompiledSchema) -> pa.Table | None:
    """The rows of JSON texts, or None if any of them does not fit."""
    text = b"\n".join(rows)
    refuse_many_values(text, compiled)
    if compiled.decode_row is None:
        return None
    try:
        tally = Tally()
        table = compiled.assemble(list(map(compiled.decode_row.decode, rows)), tally)
    except FAST_PATH_FAULTS:
        return None
    return table if tally.accounts_for(quotation_marks(text)) else None


def _piecewise(rows: Sequence[tuple[Origin, bytes]], compiled: CompiledSchema, faults: Faults) -> pa.Table:
    """The rows of lines of which some need a close look."""
    tables = []
    for start in range(0, len(rows), _PIECE_ROWS):
        piece = rows[start : start + _PIECE_ROWS]
        table = _at_once([line for _, line in piece], compiled)
        if table is None:
            table = _python_table(list(_read_lines(piece, compiled, faults)), compiled, faults)
        tables.append(table)
        if faults.full:
            break
    return pa.concat_tables(tables).combine_chunks()


def _read_lines(
    rows: Iterable[tuple[Origin, bytes]], compiled: CompiledSchema, faults: Faults
) -> Iterator[dict[str, Any]]:
    for origin, line in rows:
        yield _read_row(_parse_line(line, origin), compiled, below(origin.pointer, origin.row), faults)


def _parse_line(line: bytes, origin: Origin) -> Any:
    try:
        return parse_json(line.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise malformed_row(origin, f"invalid UTF-8: {fault.reason}", origin.byte + fault.start) from None
    except json.JSONDecodeError as fault:
        byte = origin.byte + len(fault.doc[: fault.pos].encode("utf-8"))
        raise malformed_row(origin, f"not JSON: {_lower(fault.msg)}", byte) from None
    except RecursionError:
        raise malformed_row(origin, "the JSON is nested too deeply", origin.byte) from None


def _array_exactly(raw: bytes, compiled: CompiledSchema, pointer: str, faults: Faults) -> pa.Table:
    """The rows of a text that msgspec does not take for a JSON array: the search for the reason."""
    refuse_many_values(raw, compiled)
    text = _require_utf8(raw)
    read = []
    try:
        for number, row in enumerate(parse_json_array(text)):
            read.append(_read_row(row, compiled, below(pointer, number), faults))
            if faults.full:
                break
    except json.JSONDecodeError as fault:
        byte = len(text[: fault.pos].encode("utf-8"))
        raise _malformed_at(raw, byte, f"not JSON: {_lower(fault.msg)}") from None
    except RecursionError:
        raise MalformedBody("the JSON is nested too deeply") from None
    except TypeError:
        mismatch(pointer, f"expected an array of row objects, got {describe(parse_json(text))}")
    return _python_table(read, compiled, faults)


def _read_row(value: Any, compiled: CompiledSchema, pointer: str, faults: Faults) -> dict[str, Any]:
    """The Python values of one row by column; what is wrong with it goes to `faults`."""
    if not isinstance(value, Members):
        faults.add(pointer, f"expected an object with the fields of a row, got {describe(value)}")
        return {}
    members = distinct_members(value, pointer, faults)
    row: dict[str, Any] = {}
    for name, member in members.items():
        if faults.full:
            break
        place = below(pointer, name)
        if name not in compiled.types:
            faults.add(place, unknown_field(name, compiled.types))
        elif member is None and name in compiled.required:
            faults.add(place, null_field(name, str(compiled.types[name])))
        else:
            row[name] = read_value(member, compiled.types[name], place, faults)
    for name, data_type in compiled.types.items():
        if name in compiled.required and name not in members and not faults.full:
            faults.add(below(pointer, name), missing_field(name, str(data_type)))
    return row


def _python_table(rows: list[dict[str, Any]], compiled: CompiledSchema, faults: Faults) -> pa.Table:
    """The table of exactly read rows; empty if there were faults, since it will not be used."""
    if faults.count:
        return compiled.arrow.empty_table()
    columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in compiled.arrow]
    return pa.Table.from_arrays(columns, schema=compiled.arrow)


def _require_utf8(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _malformed_at(raw, fault.start, f"invalid UTF-8: {fault.reason}") from None


def _malformed_at(raw: bytes, byte: int, reason: str) -> MalformedBody:
    line = raw.count(b"\n", 0, byte) + 1
    return MalformedBody(f"line {line}, byte {byte}: {reason}", line=line, byte=byte)


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
