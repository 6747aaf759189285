"""The values that reads return."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pyarrow as pa

from app.core.jobs.kinds.read import ReadQuery, ReadSchema
from app.kernel.format.file_format import FileFormat


class RowPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of the table at `version`, under its schema of then. All pages of a list are of the same version.

    `corrected`: whether later commits have corrected one of them; None for the latest version, and if it is not known.
    """

    rows: pa.Table
    version: int
    schema_id: int
    next_page_token: str | None
    corrected: bool | None


class ReadManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a result in its destination. `checksum`: `xxh3-128:` and the digest in hexadecimal."""

    name: str
    rows: int
    size_bytes: int
    checksum: str
    sha256: str


class ReadManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a read job has copied to its destination, as the `manifest.json` beside the files. `begin`: null unless the
    read was incremental.
    """

    job_id: str
    dataset: str
    dataset_name: str
    query: ReadQuery
    version: int
    begin: int | None
    format: FileFormat
    schema: ReadSchema
    files: tuple[ReadManifestFile, ...]
    rows: int
    created_at: datetime


class KeyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What a lookup reads of the rows of its keys, as of `version`, `as_of` or the version with the name `tag`.

    Without any of the three, the latest version is read. `columns`: None for all.
    """

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    columns: tuple[str, ...] | None = None


class FoundKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of requested keys, in their order, at `version`, under its schema of then.

    `row_versions`: int64, the version that set the values of each row; null for a key without a row. `row_offsets`:
    int64, the offset of the change that did; null where it is unknown, too. `corrected`: as of `RowPage`.
    """

    rows: pa.Table
    row_versions: pa.ChunkedArray
    row_offsets: pa.ChunkedArray
    version: int
    schema_id: int
    corrected: bool | None
