"""Record errors: bad records reject the whole input, or they are quarantined.

Decoders do not know which. They report bad records to a `RecordErrors`, leave the record out, and continue.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

import msgspec

from app.codecs.faults import ERRORS_COUNTED_MAX, Faults, below
from app.format.errors import FieldError, MalformedBody

_BUFFERED_RECORDS_MAX: Final = 4_096
_BUFFERED_BYTES_MAX: Final = 4 << 20


class BadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A bad record, as it was sent.

    `position`: its row number in the input. `errors`: its faults, at least the first ones; pointers are relative to the
    record. `payload`: its JSON text, or its CSV record without the line end; an Arrow or Parquet row as JSON. The bytes
    are unchanged, so they may not be JSON or UTF-8. `header`: for a CSV record the header line that names its cells,
    else None.
    """

    position: int
    errors: tuple[FieldError, ...]
    payload: bytes
    header: bytes | None = None


class RecordErrors(Protocol):
    """The receiver of bad records from decoders."""

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
        unreadable: MalformedBody | None = None,
    ) -> None:
        """Reports one record. `faults`: their pointers are relative to the record. `payload` is called if the record is
        kept.

        `unreadable`: the error for an input with this record, if its text cannot be parsed.
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
        unreadable: MalformedBody | None = None,
    ) -> None:
        """Raises MalformedBody for an unreadable record: the text after it may not be a record."""
        if unreadable is not None:
            raise unreadable
        self.count += 1
        self.faults.take(below(self.pointer, position), faults)

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
    count: int = 0
    records: int = 0
    _buffered: list[BadRecord] = field(default_factory=list)
    _buffered_bytes: int = 0

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
        unreadable: MalformedBody | None = None,  # noqa: ARG002 - the faults have the reason
    ) -> None:
        self.put(BadRecord(position=position, errors=tuple(faults.listed), payload=payload(), header=header))

    def put(self, record: BadRecord) -> None:
        """Adds a record."""
        self.count += 1
        self._buffered.append(record)
        self._buffered_bytes += len(record.payload)
        if len(self._buffered) >= _BUFFERED_RECORDS_MAX or self._buffered_bytes >= _BUFFERED_BYTES_MAX:
            self.close()

    def count_records(self, records: int) -> None:
        self.records += records

    def raise_if_rejected(self) -> None:
        """Does nothing: bad records are expected."""

    def close(self) -> None:
        """Writes the remaining records."""
        if self._buffered:
            self.write(self._buffered)
        self._buffered, self._buffered_bytes = [], 0


def record_errors_for(bad_records: BadRecords | None, pointer: str) -> RecordErrors:
    """The receiver of bad records: `bad_records`, or without it a rejection with pointers below `pointer`."""
    return InputRejection(pointer=pointer) if bad_records is None else bad_records
