"""Writes: of rows that were sent, and of rows that are made when the write runs."""

from __future__ import annotations

import dataclasses
from types import NoneType
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from app.core.jobs.kinds.kind import JobDeclaration, JobKind, WriteProcess
from app.kernel.commit.write_options import SaveMode, WriteOptions
from app.kernel.format.instant import Action
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.sql.conditions.row_access import RowAccess

_TABLE_WIDE: Final = (Operation.OVERWRITE, Operation.SNAPSHOT, Operation.DELETE_PARTITION)


class RestoreTarget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The version to restore: `version`, or the one before the newest `instants` commits of writes."""

    version: int | None = None
    instants: int | None = None


class SourceRound(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A round of a source. `position`: that of the source after it, once it is known.

    `transforms`: SQL makes its rows from what is read.
    """

    source_id: str
    source: str
    """The name of the source."""
    position: dict[str, Any] | None = None
    transforms: bool = False


class InputRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes [since, until) of a dataset that a refresh of a view takes in."""

    dataset_id: str
    dataset: str
    """The name of the dataset."""
    since: int
    until: int


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A write as it is stored with its job: `staged` if the API has decoded the rows, else `raw`.

    The content of staged rows has a column of its own beside the request, which only the claim of the job reads.
    `schema_id`: the schema by which the staged rows were validated. `quarantined`: the bad records that were found
    then. `ignored_fields`: the unknown fields that were null then. `derived`: a view computes the rows from its inputs
    when the write runs. `restores`: the rows are those of an earlier version. `by_value`: the rows are changes to rows
    without a key. `round`: the rows are read from a source when the write runs. `creates`: the write has registered
    its dataset. `inputs`: what a refresh takes in.
    """

    operation: Operation
    options: WriteOptions = WriteOptions()
    schema_id: int = 1
    staged: tuple[StagedFile, ...] = ()
    quarantined: tuple[QuarantineFile, ...] = ()
    # Not stored where there are none, so that an earlier release can read the request.
    ignored_fields: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    raw: RawInput | None = None
    derived: bool = False
    restores: RestoreTarget | None = None
    by_value: bool = False
    round: SourceRound | None = None
    creates: bool = False
    inputs: tuple[InputRange, ...] = ()

    @property
    def content(self) -> bytes | None:
        """The content of the staged rows, if it is kept with the job: those that the API stages are one file."""
        return next((file.content for file in self.staged if file.content is not None), None)

    def with_content(self, content: bytes | None) -> WriteRequest:
        """The request with this content of its staged rows."""
        return replace(self, staged=tuple(replace(file, content=content) for file in self.staged))

    @property
    def access(self) -> RowAccess | None:
        """What its errors may show of the dataset: anything."""
        return None

    @property
    def kind(self) -> JobKind:
        """The kind of the job, as users see it."""
        if self.derived:
            return JobKind.REFRESH
        if self.round is not None:
            return JobKind.SOURCE_ROUND
        if self.restores is not None:
            return JobKind.RESTORE if self.restores.version is not None else JobKind.ROLLBACK
        return JobKind.WRITE

    @property
    def transforms(self) -> bool:
        """Whether SQL makes its rows from those that a source reads."""
        return self.round is not None and self.round.transforms

    @property
    def exclusive(self) -> bool:
        """Whether the write must not share a commit, because it reads more of the table than its own keys, or sorts its
        files.
        """
        options = self.options
        return (
            self.derived
            or self.round is not None
            or self.by_value
            or self.operation in _TABLE_WIDE
            or options.mode in (SaveMode.IGNORE, SaveMode.ERROR_IF_EXISTS)
            or options.where is not None
            or options.merge_schema
            or options.expected_version is not None
            or options.partition_done
            or bool(options.sort_by)
        )


class RestoreResult(msgspec.Struct, frozen=True, kw_only=True):
    """Which version a restore or a rollback has gone back from and to."""

    from_version: int
    to_version: int


class BadItem(msgspec.Struct, frozen=True, kw_only=True):
    """A file or another item that a round could not decode, and why."""

    name: str
    detail: str


class RoundResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a round of a source has read. `round`: its number. `position`: that of the source after it.

    `items`: how many it has read. `bad_items`: those of them that could not be decoded and were left out.
    """

    source_id: str
    round: int
    position: dict[str, Any]
    items: int
    bad_items: tuple[BadItem, ...] = msgspec.field(name="rejected")


WRITE: Final = JobDeclaration(name=JobKind.WRITE, request=WriteRequest, result=NoneType, action=Action.COMMIT)
REFRESH: Final = JobDeclaration(
    name=JobKind.REFRESH,
    request=WriteRequest,
    result=NoneType,
    action=Action.COMMIT,
    time_limited=True,
    process=WriteProcess.DERIVED,
    input_stage="derive",
)
RESTORE: Final = JobDeclaration(
    name=JobKind.RESTORE,
    request=WriteRequest,
    result=RestoreResult,
    action=Action.RESTORE,
    time_limited=True,
    input_stage="restore",
)
ROLLBACK: Final = dataclasses.replace(RESTORE, name=JobKind.ROLLBACK, action=Action.ROLLBACK)
SOURCE_ROUND: Final = JobDeclaration(
    name=JobKind.SOURCE_ROUND,
    request=WriteRequest,
    result=RoundResult,
    action=Action.COMMIT,
    input_stage="fetch",
)
