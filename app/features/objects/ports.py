"""What stands below the location of a table, as the features give it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from app.core.catalog.values import Dataset
from app.features.objects.values import ObjectEntry
from app.kernel.sql.conditions.row_access import RowAccess


class ObjectContent(Protocol):
    """An object, before its bytes are read. A path has the same bytes for ever, so parts of two reads fit together.

    Requests of the same second share it, and read from it at the same time.
    """

    @property
    def size_bytes(self) -> int:
        """The exact size of the object."""
        ...

    @property
    def etag(self) -> str:
        """A digest of the bytes, without quotes: ASCII letters, digits, `-` and `_`."""
        ...

    @property
    def media_type(self) -> str:
        """The media type of the bytes."""
        ...

    @property
    def held_bytes(self) -> int:
        """About the memory that the object itself takes as long as it is referred to, such as rendered bytes."""
        ...

    def read_in_memory(self, start: int, count: int) -> bytes | bytearray | None:
        """These bytes, all within the object, if they are in memory; None if `read` has to be called. Never waits: it
        is called on the event loop.
        """
        ...

    def read(self, start: int, count: int) -> bytes:
        """These bytes, all within the object: 1 MiB at most. Called in a thread.

        Raises CorruptFile, Unavailable, NotFound for an object that was removed meanwhile.
        """
        ...


class ServedTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table as it is served to the owner of a key. `variant`: one of `VARIANTS`, `SHARE` or `SHARE_VECTORS`.

    `access`: what the owner may see of the dataset at the time of the request.
    """

    dataset: Dataset
    variant: str
    access: RowAccess


class ObjectTree(Protocol):
    """The objects below the location of a table whose paths have the same first segment.

    Called in a thread. A tree gives nothing that the access of the table hides.
    """

    @property
    def segment(self) -> str:
        """The first segment of the paths, such as `metadata`."""
        ...

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """The object at a path, which is decoded and relative to the segment. Its bytes are not made yet.

        Raises NotFound for an object that no version has, or that the access hides. Those of versions that have expired
        are found as long as their files have rows (`unused_file_seconds`), in the rendering of today.
        """
        ...

    def listing(self, table: ServedTable, prefix: str, after: str, limit: int) -> Sequence[ObjectEntry]:
        """The first objects, in the order of the UTF-8 bytes of their paths, that start with `prefix` and are after
        `after` (all, if it is empty). `limit`: how many at most. Both texts are relative to the segment.
        """
        ...
