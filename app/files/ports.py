"""What the use cases need of the world. Every port has one test suite, run on each implementation.

The tenant is the first argument of everything that touches a tenant's data.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import BinaryIO, Protocol

import pyarrow as pa

from app.codecs.record_errors import BadRecord
from app.format.quarantine import QuarantineFile


class ObjectStorage(Protocol):
    """Files by path relative to the storage root. Created files are durable once their writer is closed."""

    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A writer for a new file; left by an exception, it leaves no file behind. Raises StorageFull."""
        ...

    def open(self, path: str) -> pa.NativeFile:
        """Raises CorruptFile if there is none."""
        ...

    def size(self, path: str) -> int: ...

    def delete(self, paths: Iterable[str]) -> None:
        """Missing files are no error."""
        ...

    def list(self, prefix: str) -> Iterable[tuple[str, datetime]]:
        """Paths below `prefix` with the times they were last changed."""
        ...


class BadRecordSink(Protocol):
    """An open file of bad records."""

    @property
    def file(self) -> QuarantineFile | None:
        """What was written, once the sink is closed; None if there was no record."""
        ...

    def write(self, records: Sequence[BadRecord]) -> None:
        """Adds records, a few megabytes at a time. Raises StorageFull."""
        ...


class QuarantineFiles(Protocol):
    """Keeps bad records."""

    def sink(self, path: str) -> AbstractContextManager[BadRecordSink]:
        """A new file, closed at the end; left by an exception, or without a record, it leaves no file behind."""
        ...

    def read(self, file: QuarantineFile, first: int, count: int) -> Generator[BadRecord, None, None]:
        """Records [first, first + count) of a file, a few megabytes at a time. Raises CorruptFile."""
        ...
