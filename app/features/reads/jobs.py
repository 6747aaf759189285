"""The request and the result of a read job, and the ports of its use cases."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Protocol, TypeAlias

import msgspec

from app.core.jobs.kinds.read import Disposition, ReadQuery
from app.core.jobs.values import Claim
from app.features.exports.values import DESTINATION
from app.kernel.commit.write_rules import INT64_MAX
from app.kernel.format.file_format import FileFormat
from app.kernel.format.result_file import RunFile
from app.kernel.sql.read_order import ORDERS_MAX, ReadOrder

_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
_Time: TypeAlias = Annotated[datetime, msgspec.Meta(tz=True)]


class CreateRead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to read."""

    query: ReadQuery = ReadQuery.SNAPSHOT
    """`snapshot`: the table. `read_optimized`: only its base files. `incremental`: the rows that changed in a range of
    versions, as they are at its end, under the latest schema.
    """
    format: FileFormat = FileFormat.JSON
    """The format of the result."""
    disposition: Disposition = Disposition.INLINE
    """`inline`: the result is one response if it is small enough. `files`: it is always files."""
    version: _Version | None = None
    """The version to read; by default the latest."""
    as_of: _Time | None = None
    """A time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""
    begin: _Version | None = None
    """Of an incremental read: the version after which changes count; 0 for all changes."""
    begin_time: _Time | None = None
    """A time instead of `begin`: the last version committed by then."""
    end: _Version | None = None
    """Of an incremental read: the last version whose changes count; by default the latest."""
    end_time: _Time | None = None
    """A time instead of `end`: the last version committed by then."""
    columns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    """The columns to read, in this order; by default all."""
    where: str | None = None
    """A filter: the rows for which it is true."""
    partitions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the rows of partitions that match one; by default all."""
    meta: bool = False
    """Adds the five meta columns behind the others. An incremental read then needs the files of its last version."""
    corrected_since: bool = False
    """Adds two columns behind the others, which show for each row of the version what has corrected it since:
    `_hw_corrected_by` and `_hw_corrected_version`. An incremental read then needs the files of its last version.
    """
    order_by: Annotated[tuple[ReadOrder, ...], msgspec.Meta(max_length=ORDERS_MAX)] = ()
    """The columns to order rows by, the first one first; by default rows are in no particular order."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)] | None = None
    """How many rows to read at most; by default all."""
    destination: Annotated[str, DESTINATION] | msgspec.UnsetType = msgspec.UNSET
    """A folder to which the files of the result are copied, too: `s3://bucket/prefix` or `file:///folder`, below one of
    those that the operator has named.
    """


class FinishedRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a claimed job has read: the files in order."""

    dataset_id: str
    claim: Claim
    result: dict[str, Any]
    files: tuple[RunFile, ...]


class ReadResults(Protocol):
    """The files of read jobs, as long as they are kept."""

    def finish(self, tenant_id: str, read: FinishedRead) -> bool:
        """Stores the files and the success of the job in one transaction. False, and nothing, if the claim is void."""
        ...

    def files(self, tenant_id: str, job_id: str, *, keep_seconds: float) -> list[RunFile]:
        """Those of a job that has succeeded, in order. Raises ResultExpired if it ended longer ago, NotFound if its
        dataset is gone.
        """
        ...
