"""Values of reads. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headwater_client.html import RowsHtml
from headwater_client.models.changes import Change
from headwater_client.models.datasets import Field

FileFormat = Literal["parquet", "csv", "ndjson", "arrow", "json"]
"""How a file is encoded; the value is also its file name extension."""


QueryType = Literal["snapshot", "read_optimized"]
"""What a read returns: the table, or only the rows of base files, without merging the logs of merge_on_read."""


ReadQuery = Literal["snapshot", "read_optimized", "incremental"]
"""What a read job reads: the table, only its base files, or the last state of the rows that changed in a range."""


class CommitMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """A commit whose writes have metadata."""

    version: int
    """The version that it made."""
    committed_at: datetime
    """When that was."""
    metadata: tuple[dict[str, str], ...]
    """The metadata of each of its writes that has some, in the order of their acceptance."""


class FoundRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a key. Without a row, which only a history may be, its members are null."""

    row: dict[str, Any] | None
    """The columns of the row."""
    version: int | None
    """The version that set the values of the row."""
    offset: int | None
    """The change that did; null where rows do not record it, as under most producers but `full`."""
    corrected: bool | None = None
    """Of an earlier version: whether a later commit has corrected the row. Absent for the latest version, and if it is
    not known: the feed does not record or keep it, or too many changes follow.
    """
    changes: tuple[Change, ...] | None = None
    """With `history`: changes of the key, in the order of the feed."""
    next_since: int | None = None
    """With `history`: the `since` of the next page of it."""
    complete: bool | None = None
    """With `history`: whether there are no more changes up to the version."""


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the requested keys."""

    items: tuple[LookupItem, ...]
    """One for each requested key, in their order."""
    version: int
    """The version that was read."""
    schema_id: int
    """The schema that the dataset had at that version."""
    corrected: bool | None = None
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, and
    if it is not known: the feed does not record or keep it, or too many changes follow.
    """


class LookupItem(msgspec.Struct, frozen=True, kw_only=True):
    """A requested key, and its row; null without one."""

    key: dict[str, Any]
    """The key fields."""
    row: dict[str, Any] | None
    """The columns of the row."""
    version: int | None
    """The version that set the values of the row."""
    offset: int | None
    """The change that did; null where rows do not record it, as under most producers but `full`."""


class ReadFiles(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="files"):
    """A result as files, in the order of their rows."""

    query: str
    """What was read."""
    version: int
    """The version of the rows."""
    begin: int | None
    """The version after which the rows changed; null if the read was not incremental."""
    format: str
    """The format of the files."""
    rows: int
    """The number of rows in all files."""
    size_bytes: int
    """The size of all files."""
    schema: ReadSchema
    """The columns."""
    corrected: bool | None = None
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, for a
    credential that sees a part of the dataset, and if it is not known: `corrected_since` shows it for each row.
    """
    commits: tuple[CommitMetadata, ...] | None = None
    """Of an incremental read: the commits of its range whose writes have metadata, the first of them that have 16 KiB;
    absent if there are none, and for a credential that sees a part of the dataset.
    """
    commits_truncated: bool | None = None
    """True if further commits of the range have metadata; absent otherwise."""
    destination: str | None = None
    """The folder with copies of the files, and with a `manifest.json` that lists them; absent without a destination."""
    files: tuple[ResultFile, ...]
    """The files."""


class ReadOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column that rows are ordered by. Nulls come last in both directions."""

    column: str
    """The name of the column."""
    descending: bool = False
    """Whether the largest value comes first."""


class ReadRows(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="inline"):
    """A result in JSON: the rows at a version, or those that changed in a range of versions."""

    rows: tuple[dict[str, Any], ...]
    """The rows."""
    version: int
    """The version of the rows."""
    begin: int | None
    """The version after which the rows changed; null if the read was not incremental."""
    schema: ReadSchema
    """The columns."""
    corrected: bool | None = None
    """As in the result of the job."""
    commits: tuple[CommitMetadata, ...] | None = None
    """As in the result of the job."""
    commits_truncated: bool | None = None
    """As in the result of the job."""


class ReadSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a result."""

    id: int
    """The schema of the dataset that the columns are of."""
    fields: tuple[Field, ...]
    """The columns, in order."""


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a result."""

    name: str
    """The name."""
    rows: int
    """The number of rows in it."""
    size_bytes: int
    """The size of the file."""
    checksum: str
    """`xxh3-128:` and the hexadecimal digest of the file."""
    links: ResultLinks
    """Paths of related resources."""


class ResultLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a file of a result is."""

    self_: str
    """The file."""


class RowsPage(RowsHtml, msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a version, in the requested order, or in one that is always the same; all pages are of one version."""

    rows: tuple[dict[str, Any], ...]
    """The rows."""
    version: int
    """The version of the rows."""
    schema_id: int
    """The schema that the dataset had at that version."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
    corrected: bool | None = None
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, and
    if it is not known: the feed does not record or keep it, or too many changes follow.
    """


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a table at a version. Together they have each of its rows once."""

    version: int
    """The version of the rows."""
    kept_until: datetime
    """Until when the version is kept at least. Each request for a part keeps it for ten more minutes."""
    schema: ReadSchema
    """The requested columns, in order."""
    parts: tuple[ScanPart, ...]
    """The parts, in no particular order."""


class ScanPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a scan: some rows of the table, which are in no other part."""

    name: str
    """The name."""
    format: str
    """`parquet`: a file of the table. It may have more columns than were requested, and has two of the service's own,
    `_hw_version` and `_hw_offset`; for a key that sees a part of the dataset, a file with what it sees of one. `arrow`:
    an Arrow IPC stream of the requested columns.
    """
    rows: int | None
    """The number of rows in it; null where only reading it shows how many there are."""
    size_bytes: int | None
    """Of a Parquet file its size; otherwise the approximate size of the files that are read for it, or null where these
    have rows or values that the key does not see.
    """
    checksum: str | None
    """Of a Parquet file `xxh3-128:` and its hexadecimal digest; otherwise null."""
    links: ScanPartLinks
    """Paths of related resources."""


class ScanPartLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a part of a scan is."""

    self_: str
    """The part. `Prefer: redirect` gives a link to a Parquet file in the storage, if the service gives such links."""


ReadOutput = ReadRows | ReadFiles
