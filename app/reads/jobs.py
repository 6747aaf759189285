"""What read jobs exchange: what is asked for, what came of it, and the ports for both."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

import msgspec

from app.format.file_format import FileFormat
from app.format.result_file import RunFile
from app.format.rows.read_order import ReadOrder
from app.format.schema.schema import Field, Schema
from app.jobs.engine import TaskProgress
from app.jobs.tasks import Disposition, ReadQuery
from app.jobs.values import Claim
from app.reads.tasks import ReadPart, ReadPartResult


class NewRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader wants to have read.

    Of a snapshot: as of `version`, `as_of` or the version named `tag`, the latest unless said. Of an incremental read:
    what changed after `begin` or `begin_time`, up to `end` or `end_time`, the latest unless said.
    """

    query: ReadQuery
    format: FileFormat
    disposition: Disposition
    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    begin: int | None = None
    begin_time: datetime | None = None
    end: int | None = None
    end_time: datetime | None = None
    columns: tuple[str, ...] | None = None
    where: str | None = None
    partitions: tuple[str, ...] | None = None
    order_by: tuple[ReadOrder, ...] = ()
    limit: int | None = None


class ReadSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a result, in order; `id`: of the schema of the dataset that they are of."""

    id: int
    fields: tuple[Field, ...]

    def as_schema(self) -> Schema:
        """The columns as a schema."""
        return Schema(id=self.id, fields=self.fields)


class ReadResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a read job, and stands in its `result`. `begin` is of an incremental read.

    `inline`: the result is one content, rather than files that are fetched one by one.
    """

    query: ReadQuery
    version: int
    begin: int | None
    format: FileFormat
    inline: bool
    rows: int
    files: int
    size_bytes: int
    schema: ReadSchema


class FinishedRead(msgspec.Struct, frozen=True, kw_only=True):
    """What a held job has read: the files in order."""

    dataset_id: str
    claim: Claim
    result: dict[str, Any]
    files: tuple[RunFile, ...]


class ReadResults(Protocol):
    """The files of read jobs, as long as they are kept."""

    def finish(self, tenant_id: str, finished: FinishedRead) -> bool:
        """One transaction: the files, and the success of the job. False, and nothing, if the claim is void."""
        ...

    def files(self, tenant_id: str, job_id: str, *, keep_seconds: float) -> list[RunFile]:
        """Those of a job that has succeeded, in order. Raises ResultExpired if it ended longer ago, NotFound if its
        dataset is gone.
        """
        ...


class ReadEngine(TaskProgress, Protocol):
    """Runs the tasks of read jobs on Spark."""

    def read(self, parts: Sequence[ReadPart], tag: str) -> list[ReadPartResult]:
        """One answer per part, in order.

        Raises InvalidRequest, InvalidFilter, CorruptFile, StorageFull, EngineStopped.
        """
        ...


def described(result: ReadResult) -> dict[str, Any]:
    """The result as its job keeps it."""
    found: dict[str, Any] = msgspec.to_builtins(result)
    return found
