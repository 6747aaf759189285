"""What becomes of records that cannot be taken: the whole input is refused for them, or they are set aside.

Decoders do not know which. They tell what they find to a `RecordErrors`, leave the record out, and go on.
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
    """A record that could not be taken, as it was sent.

    `position`: its row number in the input. `errors`: what is wrong with it, the first faults at least; pointers start
    at the record itself. `payload`: its JSON text, or its CSV record without the line end; an Arrow or Parquet row as
    JSON. The bytes are the client's own, so they may be no JSON or no UTF-8 at all. `header`: for a CSV record the
    header line that names its cells, else None.
    """

    position: int
    errors: tuple[FieldError, ...]
    payload: bytes
    header: bytes | None = None


class RecordErrors(Protocol):
    """Where decoders tell of records that they cannot take."""

    @property
    def count(self) -> int:
        """How many records were told of."""
        ...

    @property
    def faults_max(self) -> int:
        """How many faults are worth looking for."""
        ...

    @property
    def full(self) -> bool:
        """Whether to stop looking."""
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
        """Tells of one record. `faults`: their pointers start at the record. `payload` is asked for if it is kept.

        `unreadable`: the error for an input that has this record, where its very text is at fault.
        """
        ...

    def count_records(self, records: int) -> None:
        """Told how many records of NDJSON were read, good and bad."""
        ...

    def raise_if_rejected(self) -> None:
        """Called after every step: raises where bad records are not to be."""
        ...


@dataclass(slots=True, kw_only=True)
class InputRejection:
    """Refuses the input for its bad records, with the first faults of all that were found."""

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
        payload: Callable[[], bytes],  # noqa: ARG002 - nobody will read it
        *,
        header: bytes | None = None,  # noqa: ARG002 - nor this
        unreadable: MalformedBody | None = None,
    ) -> None:
        """Raises MalformedBody for an unreadable record: what follows it may be no record at all."""
        if unreadable is not None:
            raise unreadable
        self.count += 1
        self.faults.take(below(self.pointer, position), faults)

    def count_records(self, records: int) -> None:
        """Nothing: whoever needs the number counts again."""

    def raise_if_rejected(self) -> None:
        """Raises SchemaMismatch if there was any bad record."""
        self.faults.raise_if_any()


@dataclass(slots=True, kw_only=True)
class BadRecords:
    """Sets bad records aside: hands them to `write`, some at a time, about in order. `close` hands over the rest.

    However many there are, no more than a few megabytes of them are held.
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
        unreadable: MalformedBody | None = None,  # noqa: ARG002 - the faults say so, too
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
        """Nothing: bad records are expected."""

    def close(self) -> None:
        """Hands over what is still held."""
        if self._buffered:
            self.write(self._buffered)
        self._buffered, self._buffered_bytes = [], 0


def record_errors_for(bad_records: BadRecords | None, pointer: str) -> RecordErrors:
    """Where to tell of bad records: `bad_records`, or without it a refusal whose pointers start with `pointer`."""
    return InputRejection(pointer=pointer) if bad_records is None else bad_records
