"""Sources: their definitions, states and rounds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec

from app.access.tenants.errors import QuotaExceeded
from app.core.jobs.values import SERVICE_MADE
from app.features.sources.errors import InvalidSource
from app.features.sources.ports import Place, Position, RoundLimits, SourceEnvironment, SourceLag
from app.infra.kafka.errors import SourceUnavailable
from app.kernel.commit.write_options import ChangeOrder, OnError, WriteOptions
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.new_dataset import CreateTable
from app.kernel.format.errors import CommitConflict, Fault, FieldError
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation

INTERVAL_SECONDS: Final = 1.0
"""The pause between the rounds of a source that has read everything, by default."""
_TRANSIENT: Final = SERVICE_MADE | {SourceUnavailable.code, CommitConflict.code, QuotaExceeded.code}
_RETRY_SECONDS: Final = 1.0
_RETRY_SECONDS_MAX: Final = 300.0
_DOUBLINGS_MAX: Final = 16
RECENT_ROUNDS: Final = 10
"""The number of rounds that the rate of a source is computed from."""
# The clock of the database may be set back meanwhile.
_ROUND_SECONDS_MIN: Final = 0.001
_T = TypeVar("_T")

IntervalSeconds: TypeAlias = Annotated[float, msgspec.Meta(ge=0.1, le=366 * 86_400)]
RoundRows: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=100_000_000)]
RoundBytes: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=2**36)]
RoundItems: TypeAlias = Annotated[int, msgspec.Meta(ge=1, le=10_000)]
PositionMembers: TypeAlias = Annotated[
    dict[str, Any], msgspec.Meta(examples=[{"files": 12, "last": "2026-11-23.ndjson"}])
]


class SourceMode(str, Enum):
    """Whether a source ends once it has read everything, or waits for more."""

    ONCE = "once"
    CONTINUOUS = "continuous"


class SourceState(str, Enum):
    """`active` sources start rounds by themselves. Those that are `paused`, `finished` (mode `once` has read all)
    or `failed` (the input cannot be written) start rounds on request only.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"
    FAILED = "failed"


class TransformField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of what a source reads; it may be null."""

    name: Annotated[str, msgspec.Meta(examples=["id"])]
    """The name of the column."""
    type: Annotated[str, msgspec.Meta(examples=["int64"])]
    """Its type, as of a column of a dataset."""


class SourceTransform(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The query that makes the rows of a source from what it reads."""

    sql: Annotated[str, msgspec.Meta(examples=["SELECT id, upper(note) AS note FROM source WHERE id > 0"])]
    """A SELECT over `source`, which makes one row or none from each row, in the SQL of views."""
    fields: Annotated[list[TransformField], msgspec.Meta(min_length=1, max_length=1_000)]
    """The columns of what the source reads."""


class SourceDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a source reads, and how it is written. `dataset`: the name at the registration. `config`: without secrets.

    `operation`: None for that of the dataset: upsert with a record key, insert without one. `filter_duplicates`: rows
    whose key is in the table are left out. `create`: the dataset is registered with the columns of the first round.
    `ends_partitions_since`: once a source of mode `once` has read everything, the partitions that changed after this
    version are done; None ends none. `transform`: None to write what is read. `order`: that of changes, unset for the
    default of the kind. `metadata`: that of its writes, unset for none.
    """

    dataset: str
    kind: str
    config: dict[str, Any]
    mode: SourceMode
    interval_seconds: float = INTERVAL_SECONDS
    operation: Operation | None = None
    on_error: OnError = OnError.FAIL
    merge_schema: bool = False
    filter_duplicates: bool = False
    limits: RoundLimits = RoundLimits()
    create: CreateTable | None = None
    ends_partitions_since: int | None = None
    transform: SourceTransform | None = None
    order: ChangeOrder | msgspec.UnsetType = msgspec.UNSET
    metadata: dict[str, str] | msgspec.UnsetType = msgspec.UNSET

    def operation_on(self, dataset: DatasetDefinition) -> Operation:
        """The operation of its writes."""
        if self.filter_duplicates:
            return Operation.INSERT
        return self.operation or (Operation.UPSERT if dataset.keyed else Operation.INSERT)

    @property
    def options(self) -> WriteOptions:
        """The options of its writes."""
        return WriteOptions(
            on_error=self.on_error,
            merge_schema=self.merge_schema,
            drop_duplicates=self.filter_duplicates,
            metadata=self.metadata or None,
        )


class RoundTime(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rows a round has read, and when."""

    rows: int
    started_at: datetime
    ended_at: datetime


class RoundSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The last round of a source that was committed."""

    number: int
    """Counts the rounds of the source."""
    job_id: str
    """The job that has written it."""
    rows: RowCounts
    """What it did to rows."""
    items: int
    """The files or other items that it read."""
    ended_at: datetime
    """When it was committed."""


class StoredRound(RoundSummary, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The last round with the times of the last ones, itself included, the first one first."""

    recent: tuple[RoundTime, ...] = ()

    @property
    def summary(self) -> RoundSummary:
        """What is shown of it."""
        return RoundSummary(**{name: getattr(self, name) for name in RoundSummary.__struct_fields__})

    @property
    def rate(self) -> float | None:
        """Rows per second of the last rounds, from the start of the first to the commit of the last; None if unknown:
        the round was committed by an earlier release.
        """
        if not self.recent:
            return None
        seconds = (self.recent[-1].ended_at - self.recent[0].started_at).total_seconds()
        return round(sum(each.rows for each in self.recent) / max(seconds, _ROUND_SECONDS_MIN), 3)


class DataSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source, and how far it has been read.

    `dataset_id`: None until it has registered its dataset. `dataset_name`: the present one. `rounds`: the number of
    committed rounds; a change of the position by request counts, too. `reported_rounds`: that number when the kind was
    last called after a commit. `failures`: the number of failures in a row, the last with `error`. `epoch`: of the
    claim.
    """

    id: str
    tenant_id: str
    name: str
    dataset_id: str | None
    dataset_name: str
    definition: SourceDefinition
    secrets: dict[str, Any]
    state: SourceState
    revision: int
    position: Position
    rounds: int
    reported_rounds: int
    failures: int
    error: Fault | None
    lag: SourceLag | None
    last_round: StoredRound | None
    job_id: str | None
    epoch: int
    created_at: datetime

    def place(self, environment: SourceEnvironment) -> Place:
        """The source as its kind sees it."""
        return Place(
            tenant_id=self.tenant_id,
            source_id=self.id,
            config={**self.definition.config, **self.secrets},
            environment=environment,
        )


class NewSource(msgspec.Struct, frozen=True, kw_only=True):
    """A source to register. `schemas`: the ids of the schemas that it was checked against, by dataset."""

    id: str
    name: str
    dataset_id: str | None
    definition: SourceDefinition
    secrets: dict[str, Any]
    position: Position = {}
    schemas: Mapping[str, int] = {}


class SourceUpdate(msgspec.Struct, frozen=True, kw_only=True):
    """The members of a source that a change sets; absent ones keep their values."""

    state: SourceState | msgspec.UnsetType = msgspec.UNSET
    """`paused` to start no more rounds, `active` to start them (again)."""
    interval_seconds: IntervalSeconds | msgspec.UnsetType = msgspec.UNSET
    """The pause before it checks for new input, once it has read everything."""
    max_rows: RoundRows | msgspec.UnsetType = msgspec.UNSET
    """The most rows of a round. A round that runs keeps its limits, as for the two others."""
    max_bytes: RoundBytes | msgspec.UnsetType = msgspec.UNSET
    """The most bytes of a round."""
    max_items: RoundItems | msgspec.UnsetType = msgspec.UNSET
    """The most files or pages of a round."""
    position: PositionMembers | msgspec.UnsetType = msgspec.UNSET
    """Where it goes on; `{}` for the beginning. Which items it has read is deleted."""


class SourceChange(SourceUpdate, frozen=True, kw_only=True):
    """A change of a source."""

    revision: int | None
    """The revision that it must have; None for any."""

    def apply(self, definition: SourceDefinition) -> SourceDefinition:
        """The definition with the interval and the limits of the change."""
        limits = definition.limits
        limits = msgspec.structs.replace(
            limits,
            rows=_changed(self.max_rows, limits.rows),
            bytes=_changed(self.max_bytes, limits.bytes),
            items=_changed(self.max_items, limits.items),
        )
        interval = _changed(self.interval_seconds, definition.interval_seconds)
        return msgspec.structs.replace(definition, interval_seconds=interval, limits=limits)


def refused_source(pointer: str, detail: str) -> InvalidSource:
    """The error for a member that is not valid."""
    return InvalidSource(
        f"{pointer.removeprefix('/')}: {detail}", [FieldError(pointer=pointer, detail=detail)]
    )


def _changed(new: _T | msgspec.UnsetType, value: _T) -> _T:
    return value if isinstance(new, msgspec.UnsetType) else new


def is_transient(code: str) -> bool:
    """Whether a source goes on by itself after a failure with this code."""
    return code in _TRANSIENT


def retry_seconds(failures: int) -> float:
    """The pause after this number of failures in a row, in seconds: it doubles up to five minutes."""
    pause: float = _RETRY_SECONDS * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS_MAX)
    return min(pause, _RETRY_SECONDS_MAX)
