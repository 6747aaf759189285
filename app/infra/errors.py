"""Errors of the storage and of the database: what any room gets that uses them."""

from __future__ import annotations

from typing import ClassVar

from app.kernel.format.errors import HeadwaterError


class StorageFull(HeadwaterError):
    """The storage refused more bytes. The head did not move."""

    code = "storage-full"
    title = "The storage is full"


class NotStorable(HeadwaterError):
    """The catalogue cannot store the change, now or later: a limit of Postgres is exceeded. Fact: `sqlstate`."""

    code = "not-storable"
    title = "The catalogue cannot store the change"


class Unavailable(HeadwaterError):
    """A part of the service is out of reach. No data is known to be lost; the client may retry."""

    code = "unavailable"
    title = "The service is not available right now"
    awaits: ClassVar[str | None] = "database"
    """What must come back before a job is tried again: `storage`, `database` or `sources`. None if the fault may be of
    the job's own.
    """


class DatabaseFull(Unavailable):
    """The disk on which Postgres lies is full: the transaction was undone, and others that only read work."""


class StorageUnavailable(Unavailable):
    """The storage is out of reach, or cannot be read or written. Fact: `path`."""

    code = "storage-unavailable"
    title = "The storage is not available right now"
    awaits = "storage"
