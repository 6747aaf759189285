"""Values of rendered files."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from app.kernel.format.file_group import ColumnStatistics, DataFile

RENDERED_SEGMENT: Final = "rendered"
"""The first segment of the paths of rendered files below the location of a table."""


class RenderedRows(msgspec.Struct, frozen=True, kw_only=True):
    """What was written of a file: its rows, and statistics of its columns by field id."""

    row_count: int
    statistics: dict[str, ColumnStatistics] = {}


class RenderingOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """What a rendering is made of: it is removed once that is no longer kept.

    `data_path`: the data file whose entry of `version`, its `added_version`, is rendered, under the schema `schema_id`;
    None for changes, which are those of `version`.
    """

    version: int
    data_path: str | None = None
    schema_id: int | None = None


class RenderingEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A rendering that was made. Its facts stay when its object is deleted.

    `key`: 16 bytes, of what decides its bytes. `content`: 32 hexadecimal digits, the digest of its bytes. `path`: of
    the object below the root of the storage; None without one, as always for one without rows. `is_idle`: it was used
    so long ago that a use is recorded.
    """

    key: bytes
    view: str
    content: str
    size_bytes: int
    row_count: int
    statistics: dict[str, ColumnStatistics]
    path: str | None
    is_idle: bool = False


class StoredRendering(msgspec.Struct, frozen=True, kw_only=True):
    """A rendering of a data file, with the entry of the file, and the schema under which it was rendered."""

    entry: RenderingEntry
    source: DataFile
    schema_id: int


class RenderedForm(msgspec.Struct, frozen=True, kw_only=True):
    """What decides who sees a rendering: its view, the schema under which it is rendered, and that of the data file."""

    view: str
    schema_id: int
    file_schema_id: int


class UsedObject(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """An object that may be deleted, by the time of its last use."""

    used_at: datetime
    dataset_id: str
    key: bytes
    path: str
    size_bytes: int


class RenderedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A data file as a reader sees it.

    `view`: 16 hexadecimal digits, equal for readers that see the same of it. `content`: 32 hexadecimal digits, the
    digest of its bytes. `size_bytes`, `row_count`, `statistics` (by field id; none of masked columns): of the rendered
    file. `schema_id`: of the version that is read.
    """

    view: str
    content: str
    size_bytes: int
    row_count: int
    statistics: dict[str, ColumnStatistics]
    source: DataFile
    schema_id: int

    @property
    def path(self) -> str:
        """The path below the location of the table."""
        return f"{RENDERED_SEGMENT}/{object_path(self.view, self.content)}"


def object_path(view: str, content: str) -> str:
    """The path of a rendered file below the folder of all of them."""
    return f"{view}/{content}.parquet"
