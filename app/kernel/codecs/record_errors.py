"""Record errors: bad records reject the whole input, or they are quarantined.

Decoders do not know which. They report bad records to a `RecordErrors`, leave the record out, and continue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec
import pyarrow as pa

from app.kernel.codecs.faults import ERRORS_COUNTED_MAX, Faults, below
from app.kernel.format.errors import FieldError, HeadwaterError
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS, EXCERPT_BYTES, RowLimits

_BUFFERED_RECORDS_MAX: Final = 4_096
_BUFFERED_BYTES_MAX: Final = 4 << 20


class BadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record, as it was sent.

    `position`: its row number in the input. `errors`: its faults, at least the first ones; pointers are relative to the
    record. `payload`: its JSON text, or its CSV record without the line end; an Arrow or Parquet row as JSON. The bytes
    are unchanged, so they may not be JSON or UTF-8. Of a record that is too large, only an excerpt may be kept, which
    is no record. `header`: for a CSV record the header line that names its cells, else None.
    """

    position: int
    errors: tuple[FieldError, ...]
    payload: bytes
    header: bytes | None = None


class RecordErrors(Protocol):
    """The receiver of bad records from decoders, and the limits of their input."""

    @property
    def limits(self) -> RowLimits:
        """The limits of the input."""
        ...

    @property
    def ignored_fields(self) -> set[str]:
        """The unknown fields of good records, which all were null."""
        ...

    @property
    def count(self) -> int:
        """The number of reported records."""
        ...

    @property
    def faults_max(self) -> int:
        """The number of faults to collect at most."""
        ...

    @property
    def full(self) -> bool:
        """Whether decoding may stop."""
        ...

    def add(
        self,
        position: int,
        faults: Faults,
        payload: Callable[[], bytes],
        *,
        header: bytes | None = None,
        unreadable: HeadwaterError | None = None,
    ) -> None:
        """Reports one record. `faults`: their pointers are relative to the record. `payload` is called if the record is
        kept.

        `unreadable`: the error for an input with this record, if its text cannot be parsed, or is too large.
        """
        ...

    def add_too_large(
        self,
        position: int,
        excerpt: Callable[[], bytes],
        *,
        header: bytes | None = None,
        line: int | None = None,
    ) -> None:
        """Reports a record above the limit. `excerpt` is called if the record is kept; it must not be another record.

        `line`: the number of its first line, in a text.
        """
        ...

    def count_records(self, records: int) -> None:
        """Reports the number of NDJSON records that were read, good and bad."""
        ...

    def raise_if_rejected(self) -> None:
        """Called after every step. Raises if bad records are rejected."""
        ...


@dataclass(slots=True, kw_only=True)
class InputRejection:
    """Rejects the input for its bad records, with the first of all faults."""

    pointer: str
    limits: RowLimits = DEFAULT_LIMITS
    ignored_fields: set[str] = field(default_factory=set)
    count: int = 0
    faults: Faults = field(default_factory=Faults)

    @property
    def faults_max(self) -> int:
        return ERRORS_COUNTED_MAX

    @property
    def full(self) -> bool:
        return self.faults.full

    def add(
        self,
        position: int,
        faults: Faults,
        payload: Callable[[], bytes],  # noqa: ARG002 - part of the interface
        *,
        header: bytes | None = None,  # noqa: ARG002 - part of the interface
        unreadable: HeadwaterError | None = None,
    ) -> None:
        """Raises the error of an unreadable record: the text after it may not be a record."""
        if unreadable is not None:
            raise unreadable
        self.count += 1
        self.faults.take(below(self.pointer, position), faults)

    def add_too_large(
        self,
        position: int,
        excerpt: Callable[[], bytes],  # noqa: ARG002 - part of the interface
        *,
        header: bytes | None = None,  # noqa: ARG002 - part of the interface
        line: int | None = None,
    ) -> None:
        """Raises SchemaMismatch for faults of earlier records, else RowTooLarge."""
        self.raise_if_rejected()
        raise self.limits.refusal(position, below(self.pointer, position), line)

    def count_records(self, records: int) -> None:
        """Does nothing: the number is computed again where it is needed."""

    def raise_if_rejected(self) -> None:
        """Raises SchemaMismatch if there was a bad record."""
        self.faults.raise_if_any()


@dataclass(slots=True, kw_only=True)
class BadRecords:
    """Quarantines bad records: passes them to `write` in batches, roughly in order. `close` passes the rest.

    Whatever their number, at most a few megabytes of them are in memory.
    """

    write: Callable[[Sequence[BadRecord]], None]
    limits: RowLimits = DEFAULT_LIMITS
    ignored_fields: set[str] = field(default_factory=set)
    count: int = 0
    records: int = 0
    _buffer: list[BadRecord] = field(default_factory=list)
    _buffer_bytes: int = 0

    @property
    def faults_max(self) -> int:
        return sys.maxsize

    @property
    def full(self) -> bool:
        return False

    def add(
        self,
        position: int,
        faults: Faults,
        payload: Callable[[], bytes],
        *,
        header: bytes | None = None,
        unreadable: HeadwaterError | None = None,  # noqa: ARG002 - the faults have the reason
    ) -> None:
        self.put(
            BadRecord(position=position, errors=tuple(faults.first_errors), payload=payload(), header=header)
        )

    def add_too_large(
        self,
        position: int,
        excerpt: Callable[[], bytes],
        *,
        header: bytes | None = None,
        line: int | None = None,  # noqa: ARG002 - the position has the record
    ) -> None:
        faults = Faults()
        faults.add("", f"{self.limits.too_large()}. At most {EXCERPT_BYTES} bytes of it are kept")
        self.add(position, faults, excerpt, header=header)

    def put(self, record: BadRecord) -> None:
        """Adds a record."""
        self.count += 1
        self._buffer.append(record)
        self._buffer_bytes += len(record.payload)
        if len(self._buffer) >= _BUFFERED_RECORDS_MAX or self._buffer_bytes >= _BUFFERED_BYTES_MAX:
            self.close()

    def count_records(self, records: int) -> None:
        self.records += records

    def raise_if_rejected(self) -> None:
        """Does nothing: bad records are expected."""

    def close(self) -> None:
        """Writes the remaining records."""
        if self._buffer:
            self.write(self._buffer)
        self._buffer, self._buffer_bytes = [], 0


def record_errors_for(
    bad_records: BadRecords | None,
    pointer: str,
    limits: RowLimits = DEFAULT_LIMITS,
    ignored_fields: set[str] | None = None,
) -> RecordErrors:
    """The receiver of bad records: `bad_records`, or without it a rejection with pointers below `pointer`.

    `ignored_fields`: receives the names of the unknown fields that are ignored, since they are null.
    """
    if ignored_fields is None:
        ignored_fields = set()
    if bad_records is None:
        return InputRejection(pointer=pointer, limits=limits, ignored_fields=ignored_fields)
    bad_records.limits, bad_records.ignored_fields = limits, ignored_fields
    return bad_records


def checked_rows(tables: Iterable[pa.Table], record_errors: RecordErrors) -> Generator[pa.Table]:
    """The tables up to the first one with bad records, unless these are accepted; no table without rows.

    Raises SchemaMismatch, TooManyRows.
    """
    rows = 0
    for table in tables:
        record_errors.raise_if_rejected()
        rows += table.num_rows
        record_errors.limits.check_rows(rows + record_errors.count)
        if table.num_rows:
            yield table
    record_errors.limits.check_rows(rows + record_errors.count)
    record_errors.raise_if_rejected()
