"""Read jobs."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import msgspec

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, TaskRequest
from app.kernel.format.commit_metadata import CommitMetadata
from app.kernel.format.file_format import FileFormat
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from app.kernel.sql.read_order import ReadOrder

_FOLDER: Final = "s3://warehouse/orders/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"


class ReadQuery(str, Enum):
    """What a read job reads: the table, only its base files, or the last state of the rows that changed in a range."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"
    INCREMENTAL = "incremental"


class Disposition(str, Enum):
    """Where the result of a read job is: in one response, or in files that the response links to."""

    INLINE = "inline"
    FILES = "files"


class ReadTask(TaskRequest, frozen=True, kw_only=True, tag="read"):
    """Reads rows of a version, or those that changed in (`begin`, `end`], to files.

    `version`: determined when the job was accepted; of an incremental read, `end`. `format`: a name of `ExportFormat`,
    or `json`. `meta`: whether rows have the meta columns. `corrected_since`: whether rows are marked that later changes
    have corrected. `access`: what its requester may see. `destination`: the URI of a folder to which the files are
    copied, too.
    """

    query: ReadQuery
    version: int
    format: str
    disposition: Disposition
    begin: int | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    order_by: tuple[ReadOrder, ...] = ()
    limit: int | None = None
    meta: bool = False
    corrected_since: bool = False
    access: RowAccess = EVERYTHING
    destination: str | None = None

    @property
    def with_sources(self) -> bool:
        """Whether rows need what only files of the table have: the version and the change that gave them their
        values.
        """
        return self.meta or self.corrected_since


class ReadSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a result."""

    id: Annotated[int, msgspec.Meta(examples=[1])]
    """The schema of the dataset that the columns are of."""
    fields: tuple[Field, ...]
    """The columns, in order."""

    def as_schema(self) -> Schema:
        """The columns as a schema."""
        return Schema(id=self.id, fields=self.fields)


class ReadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a read job has read."""

    query: ReadQuery
    """What was read."""
    version: int
    """The version of the rows."""
    begin: int | None
    """The version after which the rows changed; null if the read was not incremental."""
    format: FileFormat
    """The format of the files."""
    rows: int
    """The number of rows in all files."""
    size_bytes: int
    """The size of all files."""
    schema: ReadSchema
    """The columns."""
    corrected: bool | msgspec.UnsetType = msgspec.UNSET
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, for a
    credential that sees a part of the dataset, and if it is not known: `corrected_since` shows it for each row.
    """
    commits: tuple[CommitMetadata, ...] | msgspec.UnsetType = msgspec.UNSET
    """Of an incremental read: the commits of its range whose writes have metadata, the first of them that have 16 KiB;
    absent if there are none, and for a credential that sees a part of the dataset.
    """
    commits_truncated: bool | msgspec.UnsetType = msgspec.UNSET
    """True if further commits of the range have metadata; absent otherwise."""
    destination: Annotated[str, msgspec.Meta(examples=[_FOLDER])] | msgspec.UnsetType = msgspec.UNSET
    """The folder with copies of the files, and with a `manifest.json` that lists them; absent without a destination."""


class ReadResult(ReadSummary, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The `result` of a read job."""

    inline: bool
    """Whether it is one response, or files that are downloaded one by one."""
    files: int
    """How many files there are."""


READ: Final = JobDeclaration(name=JobKind.READ, request=ReadTask, result=ReadResult, time_limited=True)
