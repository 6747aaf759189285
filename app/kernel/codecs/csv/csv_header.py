"""The header line of a CSV: the columns in their order, checked against a schema."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.kernel.codecs.arrow.flat_form import FlatForm, flat_form
from app.kernel.codecs.csv.csv_records import quote_fault, record_end
from app.kernel.codecs.faults import GZIP_MAGIC, GZIP_WITHOUT_ENCODING, Faults, Origin, missing_field, shown
from app.kernel.format.errors import MalformedBody
from app.kernel.format.schema.schema import Schema

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_OTHER_SEPARATORS: Final = {b";": "a semicolon", b"\t": "a tab"}
HEADER_BYTES_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The columns of a CSV in their order, the number of the header line, and its size in bytes."""

    names: tuple[str, ...]
    line: bytes
    size_bytes: int

    @property
    def other_separator(self) -> str | None:
        """The advice for a header line that seems to have another separator than the comma; None for others."""
        if len(self.names) > 1 or self.line.startswith(b'"'):
            return None
        found = next((words for mark, words in _OTHER_SEPARATORS.items() if mark in self.line), None)
        return None if found is None else f"the header line has {found}, but the separator of CSV is a comma"

    @property
    def width_advice(self) -> str | None:
        """What may explain records of another width than the header line; None if nothing does."""
        if not self.line.startswith(b"#"):
            return self.other_separator
        return f"the header line is {shown(self.line.decode())}"


def read_header(data: bytes, schema: Schema, pointer: str = "/rows") -> Header:
    """The header line at the start of `data`, checked against the schema. Raises SchemaMismatch, MalformedBody.

    It may name columns that the schema does not have: their cells must be null.
    """
    header = parse_header(data)
    _check_header(header.names, flat_form(schema, header=header.names), pointer)
    return header


def parse_header(data: bytes) -> Header:
    """The header line at the start of `data`, unchecked. Raises MalformedBody."""
    if data[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        raise MalformedBody("the body starts with a UTF-16 byte order mark; send UTF-8", line=1, byte=0)
    if data.startswith(GZIP_MAGIC):
        raise MalformedBody(GZIP_WITHOUT_ENCODING, line=1, byte=0)
    size_bytes = record_end(data[:HEADER_BYTES_MAX])
    if size_bytes is None:
        if len(data) > HEADER_BYTES_MAX:
            raise MalformedBody(f"the header line is longer than {HEADER_BYTES_MAX} bytes", line=1, byte=0)
        size_bytes = len(data)
    line = data[:size_bytes].removeprefix(_BYTE_ORDER_MARK)
    if first_fault := quote_fault(line):
        raise malformed_at(line, first_fault.position, Origin(), first_fault.reason)
    try:
        names = next(csv.reader(io.StringIO(line.decode("utf-8"), newline=""), strict=True), [])
    except UnicodeDecodeError as fault:
        raise MalformedBody(
            f"the header line is invalid UTF-8: {fault.reason}; send UTF-8", line=1, byte=fault.start
        ) from None
    except csv.Error as fault:
        raise MalformedBody(f"the header line cannot be read: {fault}", line=1, byte=0) from None
    if not names:
        raise MalformedBody("the first line is empty; it must name the columns", line=1, byte=0)
    return Header(names=tuple(names), line=line.rstrip(b"\r\n"), size_bytes=size_bytes)


def malformed_at(data: bytes, position: int, origin: Origin, reason: str) -> MalformedBody:
    """The error of a byte at a position of data that begin at `origin`."""
    line, byte = origin.line + data.count(b"\n", 0, position), origin.byte + position
    return MalformedBody(f"line {line}, byte {byte}: {reason}", line=line, byte=byte)


def _check_header(names: Sequence[str], form: FlatForm, pointer: str) -> None:
    compiled_schema = form.compiled_schema
    faults = Faults()
    earlier: set[str] = set()
    for number, name in enumerate(names, 1):
        if name in earlier:
            faults.add(pointer, f"column {number} of the header line: {shown(name)} appears more than once")
        if faults.full:
            break
        earlier.add(name)
    for name, data_type in compiled_schema.types.items():
        if name in compiled_schema.required_names and name not in names:
            faults.add(pointer, f"the header line lacks a column: {missing_field(name, str(data_type))}")
    faults.raise_if_any()
