"""Faults of rows: their pointers, their wording, and the error that has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NoReturn

import msgspec
import pyarrow as pa

from app.kernel.format.errors import FieldError, MalformedBody, SchemaMismatch
from app.kernel.format.schema.schema import (
    FIELD_NAME_CHARACTERS_MAX,
    NAMES_EXPECTED,
    RESERVED_PREFIX,
    name_fault,
)
from app.kernel.format.similar_names import mistyped

ERRORS_LISTED_MAX: Final = 50
# More faults than this do not help a client, and a hostile body should not cause more work.
ERRORS_COUNTED_MAX: Final = 1_000
_SHOWN_CHARACTERS_MAX: Final = 60
NOT_UTF8: Final = "got invalid UTF-8"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The start of a piece of input: the number of its first row, line and byte in the whole input."""

    row: int = 0
    line: int = 1
    byte: int = 0


@dataclass(slots=True)
class Faults:
    """The faults found so far: the first ones in full, all of them counted up to a limit.

    `ignored_fields`: the unknown fields that are no fault, since they are null: names, with a dot before those of
    members.
    """

    first_errors: list[FieldError] = field(default_factory=list)
    count: int = 0
    ignored_fields: set[str] = field(default_factory=set)

    def add(self, pointer: str, detail: str) -> None:
        self.count += 1
        if len(self.first_errors) < ERRORS_LISTED_MAX:
            self.first_errors.append(FieldError(pointer=pointer, detail=detail))

    def ignore(self, pointer: str) -> None:
        """Notes an unknown field that is null. `pointer`: its place in the record."""
        first, *others = pointer[1:].split("/")
        names = [first, *(name for name in others if not name.isdecimal())]
        self.ignored_fields.add(".".join(name.replace("~1", "/").replace("~0", "~") for name in names))

    def locate(self, line: int) -> None:
        """Adds the line of a record to the faults of the record as a whole."""
        self.first_errors = [
            error if error.pointer else FieldError(pointer="", detail=f"line {line}: {error.detail}")
            for error in self.first_errors
        ]

    def locate_bytes(self, record: bytes, start: int) -> None:
        """Adds the place in the input of the first byte that is not UTF-8 to the first fault of such a text.

        `start`: that of the record.
        """
        number = next((at for at, error in enumerate(self.first_errors) if NOT_UTF8 in error.detail), None)
        if number is None:
            return
        try:
            record.decode("utf-8")
        except UnicodeDecodeError as fault:
            error = self.first_errors[number]
            detail = f"{error.detail} (at byte {start + fault.start} of the input)"
            self.first_errors[number] = FieldError(pointer=error.pointer, detail=detail)

    def take(self, pointer: str, others: Faults) -> None:
        """Adds faults whose pointers are relative to `pointer`."""
        self.count += others.count
        self.ignored_fields |= others.ignored_fields
        for fault in others.first_errors[: ERRORS_LISTED_MAX - len(self.first_errors)]:
            self.first_errors.append(FieldError(pointer=pointer + fault.pointer, detail=fault.detail))

    @property
    def full(self) -> bool:
        """Whether the limit of faults is reached."""
        return self.count >= ERRORS_COUNTED_MAX

    def raise_if_any(self) -> None:
        """Raises SchemaMismatch with the facts `errors`, `error_count`, `counting_stopped`."""
        if self.count == 0:
            return
        first = self.first_errors[0]
        number = (
            f"{'at least ' if self.full else ''}{self.count} faults; the first is " if self.count > 1 else ""
        )
        raise SchemaMismatch(
            f"{number}{first.pointer}: {first.detail}",
            errors=self.first_errors,
            error_count=self.count,
            counting_stopped=self.full,
        )


def mismatch(pointer: str, detail: str) -> NoReturn:
    """Raises SchemaMismatch for one fault."""
    faults = Faults()
    faults.add(pointer, detail)
    faults.raise_if_any()
    raise AssertionError("unreachable: a fault was added")


def below(pointer: str, name: str | int) -> str:
    """The JSON pointer (RFC 6901) of a member or element below `pointer`; names too long for a field are shortened.

    Of a name with a lone surrogate, which no text holds, it has the escape.
    """
    token = str(name)
    if not token.isascii():
        token = token.encode("utf-8", "backslashreplace").decode()
    if len(token) > FIELD_NAME_CHARACTERS_MAX:
        token = token[:FIELD_NAME_CHARACTERS_MAX] + "…"
    return f"{pointer}/{token.replace('~', '~0').replace('/', '~1')}"


def shown(text: str) -> str:
    """Text of a client, quoted for a message: escaped, and shortened where it is long."""
    cut = text if len(text) <= _SHOWN_CHARACTERS_MAX else text[:_SHOWN_CHARACTERS_MAX] + "…"
    return (
        '"' + cut.encode("unicode_escape").decode("ascii").replace('"', '\\"') + '"'
        if _odd(cut)
        else f'"{cut}"'
    )


def _odd(text: str) -> bool:
    return not text.isprintable() or '"' in text


def unknown_field(name: str, names: Iterable[str]) -> str:
    """The message for a member or column that the schema does not have."""
    reason = f"the schema has no field {shown(name)}"
    if name_fault(name):
        return f"{reason}, and none can have this name: {NAMES_EXPECTED}"
    if name.startswith(RESERVED_PREFIX):
        return f"{reason}, and none can have this name: names starting with {RESERVED_PREFIX!r} are reserved"
    similar_name = mistyped(name, names)
    if similar_name is None:
        return reason
    if similar_name.casefold() == name.casefold():
        return f"{reason}; it has {shown(similar_name)}"
    return f"{reason}; did you mean {shown(similar_name)}?"


def missing_field(name: str, type_name: str) -> str:
    """The message for a required field without a value."""
    return f"a value is required: {shown(name)} is {type_name} and not nullable"


def null_member(path: Sequence[str]) -> str:
    """The message for a member of a struct that is missing or null, although it is part of the record key."""
    return f"a value is required: {shown('.'.join(path))} is part of the record key"


def null_field(name: str, type_name: str) -> str:
    """The message for null in a field that is not nullable."""
    return f"expected {type_name}, got null: {shown(name)} is not nullable"


GZIP_MAGIC: Final = b"\x1f\x8b"
GZIP_WITHOUT_ENCODING: Final = (
    "the body is compressed with gzip; send the header Content-Encoding: gzip with it"
)


def malformed_row(origin: Origin, reason: str, byte: int, text: bytes) -> MalformedBody:
    """The error for a row that starts at `origin` and whose `text` is malformed at its byte number `byte`."""
    line, byte = origin.line + text.count(b"\n", 0, byte), origin.byte + byte
    return MalformedBody(
        f"row {origin.row} (line {line} counted from 1, byte {byte}): {reason}",
        row=origin.row,
        line=line,
        byte=byte,
    )


def malformed(reason: str, fault: BaseException | None = None) -> MalformedBody:
    """The error for malformed bytes, with the shortened message of the reader."""
    words = " ".join(str(fault).split()) if fault is not None else ""
    return MalformedBody(f"{reason}: {words[:200]}" if words else reason)


@contextmanager
def reader_faults(reason: str) -> Iterator[None]:
    """Converts Arrow's exceptions for malformed bytes into MalformedBody; errors of the storage pass."""
    try:
        yield
    except MemoryError as fault:
        raise malformed(f"{reason}: it needs more memory than there is", fault) from None
    except OSError as fault:
        # Arrow also raises OSError for malformed bytes, but only errors of the system have a number.
        if fault.errno is not None:
            raise
        raise malformed(reason, fault) from None
    except (pa.ArrowException, EOFError, UnicodeDecodeError, OverflowError) as fault:
        raise malformed(reason, fault) from None
