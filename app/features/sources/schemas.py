"""The JSON of sources: what requests send and what responses hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar.params import PathParameter

from app.features.sources.ports import RoundLimits, SourceLag
from app.features.sources.values import (
    INTERVAL_SECONDS,
    DataSource,
    IntervalSeconds,
    PositionMembers,
    RoundBytes,
    RoundItems,
    RoundRows,
    RoundSummary,
    SourceChange,
    SourceDefinition,
    SourceMode,
    SourceState,
    SourceTransform,
    SourceUpdate,
)
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.problems import fault_document
from app.kernel.commit.write_options import ChangeOrder, OnError
from app.kernel.format.definition.new_dataset import CreateTable
from app.kernel.format.operation import Operation

SourceReference: TypeAlias = Annotated[str, PathParameter(description="The id or the name of a source.")]

_PATH: Final = "/sources/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"
_DATASET: Final = "/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d3"
_CONFIG: Final = {"path": "file:///srv/incoming/orders", "format": "ndjson"}
_DEFAULT: Final = RoundLimits()

_Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_.-]{0,127}$", examples=["orders_in"])]
_Kind = Annotated[str, msgspec.Meta(examples=["files"])]
_Metadata = Annotated[dict[str, str], msgspec.Meta(examples=[{"from": "orders_in"}])]
_Config = Annotated[dict[str, Any], msgspec.Meta(examples=[_CONFIG])]


class CreateSource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A source to register."""

    name: _Name
    """A name that no other source of the tenant has."""
    dataset: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The id or the name of the dataset that it writes to. With `create`, a name that no dataset has yet will do."""
    kind: _Kind
    """What it reads, such as `files`."""
    config: _Config
    """Where it reads, and how; its members depend on the kind."""
    mode: SourceMode = SourceMode.CONTINUOUS
    """Whether it ends once it has read everything."""
    operation: Operation | None = None
    """The operation of its writes; by default `upsert` with a record key and `insert` without one."""
    order: ChangeOrder | msgspec.UnsetType = msgspec.UNSET
    """Operation changelog: whether changes are applied as they arrive, or compared by the ordering field, which is the
    default of topics.
    """
    interval_seconds: IntervalSeconds = INTERVAL_SECONDS
    """The pause before it checks for new input, once it has read everything."""
    create: CreateTable | None = None
    """Registers the dataset, if there is none, with the columns of what is read first."""
    on_error: OnError = OnError.FAIL
    """Whether bad records fail a round, or are quarantined."""
    merge_schema: bool = False
    """Whether a round adds columns that the dataset lacks, and widens types."""
    filter_duplicates: bool = False
    """Whether rows whose key is in the table already are left out. The operation is `insert` then."""
    transform: SourceTransform | None = None
    """Makes the rows by a query from what is read."""
    partition_done: bool = False
    """Mode `once`: whether the partitions that have changed since the source was registered are marked as done once it
    has read everything.
    """
    metadata: _Metadata = {}
    """The metadata of the commit of each round: texts by key, as of a write."""
    max_rows: RoundRows = _DEFAULT.rows
    """The most rows of a round, where the kind can count them before it reads."""
    max_bytes: RoundBytes = _DEFAULT.bytes
    """The most bytes of a round."""
    max_items: RoundItems = _DEFAULT.items
    """The most files or pages of a round."""
    position: PositionMembers = {}
    """Where it starts, as a position of its kind; `{}` for the `start` of the config."""


class UpdateSource(SourceUpdate, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of a source to change; a member that is left out keeps its value."""


class SourceDataset(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset of a source."""

    id: str | None
    """The id; null until the source has registered it."""
    name: Annotated[str, msgspec.Meta(examples=["orders"])]
    """The name."""


class SourceLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a source's resources."""

    self_: Annotated[str, msgspec.Meta(examples=[_PATH])]
    """The source."""
    rounds: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/rounds"])]
    """Where a round is requested."""
    dataset: Annotated[str, msgspec.Meta(examples=[_DATASET])] | None
    """Its dataset; null until the source has registered it."""


class SourceResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A source: data that arrive by themselves."""

    id: str
    """Its id."""
    name: Annotated[str, msgspec.Meta(examples=["orders_in"])]
    """Its name."""
    dataset: SourceDataset
    """The dataset that it writes to."""
    kind: _Kind
    """What it reads."""
    config: _Config
    """Where it reads, and how, without secrets."""
    mode: SourceMode
    """Whether it ends once it has read everything."""
    operation: Operation | None
    """The operation of its writes; null for that of the dataset."""
    order: ChangeOrder | None
    """The order of changes; null for that of the kind."""
    interval_seconds: float
    """The pause before it checks for new input, once it has read everything."""
    create: CreateTable | None
    """How it registers the dataset; null if it does not."""
    on_error: OnError
    """Whether bad records fail a round, or are quarantined."""
    merge_schema: bool
    """Whether a round adds columns that the dataset lacks, and widens types."""
    filter_duplicates: bool
    """Whether rows whose key is in the table already are left out."""
    transform: SourceTransform | None
    """The query that makes the rows; null to write what is read."""
    partition_done: bool
    """Whether partitions are marked as done once it has read everything."""
    metadata: _Metadata
    """The metadata of the commit of each round; `{}` for none."""
    max_rows: int
    """The most rows of a round."""
    max_bytes: int
    """The most bytes of a round."""
    max_items: int
    """The most files or pages of a round."""
    state: SourceState
    """Whether it starts rounds by itself, or why not."""
    position: PositionMembers
    """How far it has been read: what the last commit has recorded."""
    rounds: int
    """The number of its committed rounds and requested positions."""
    lag: SourceLag | None
    """What was unread when it was planned last; null before that."""
    rate: float | None
    """Rows per second of the last ten rounds, from the start of the first to the commit of the last, pauses included;
    null before the first.
    """
    last_round: RoundSummary | None
    """The last round that was committed; null before the first."""
    last_error: Annotated[dict[str, Any], PROBLEM] | None
    """Why its last round failed, or what it waits for to register its dataset; null otherwise."""
    failures: int
    """The number of failures in a row."""
    revision: int
    """Counts the changes by PATCH; its ETag."""
    created_at: datetime
    """When it was registered."""
    links: SourceLinks
    """The paths of its resources."""


class SourcePage(msgspec.Struct, frozen=True, kw_only=True):
    """Sources by name."""

    items: list[SourceResponse]
    """The sources of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ListSourcesOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_sources`."""

    dataset: str | None = None
    """The id or the name of a dataset: its sources only."""


def source_definition(new: CreateSource) -> SourceDefinition:
    """The definition that a request registers."""
    return SourceDefinition(
        dataset=new.dataset,
        kind=new.kind,
        config=new.config,
        mode=new.mode,
        interval_seconds=new.interval_seconds,
        operation=new.operation,
        on_error=new.on_error,
        merge_schema=new.merge_schema,
        filter_duplicates=new.filter_duplicates,
        limits=RoundLimits(rows=new.max_rows, bytes=new.max_bytes, items=new.max_items),
        create=new.create,
        ends_partitions_since=0 if new.partition_done else None,
        transform=new.transform,
        order=new.order,
        metadata=new.metadata or msgspec.UNSET,
    )


def source_change(change: UpdateSource, revision: int | None) -> SourceChange:
    """The change that a request makes."""
    return SourceChange(**msgspec.structs.asdict(change), revision=revision)


def source_path(source: DataSource) -> str:
    """The path of a source's resource."""
    return f"/sources/{source.id}"


def source_response(source: DataSource) -> SourceResponse:
    """The JSON of a source."""
    definition, path = source.definition, source_path(source)
    return SourceResponse(
        id=source.id,
        name=source.name,
        dataset=SourceDataset(id=source.dataset_id, name=source.dataset_name),
        kind=definition.kind,
        config=definition.config,
        mode=definition.mode,
        operation=definition.operation,
        order=None if isinstance(definition.order, msgspec.UnsetType) else definition.order,
        interval_seconds=definition.interval_seconds,
        create=definition.create,
        on_error=definition.on_error,
        merge_schema=definition.merge_schema,
        filter_duplicates=definition.filter_duplicates,
        transform=definition.transform,
        partition_done=definition.ends_partitions_since is not None,
        metadata=definition.metadata or {},
        max_rows=definition.limits.rows,
        max_bytes=definition.limits.bytes,
        max_items=definition.limits.items,
        state=source.state,
        position=source.position,
        rounds=source.rounds,
        lag=source.lag,
        rate=None if source.last_round is None else source.last_round.rate,
        last_round=None if source.last_round is None else source.last_round.summary,
        last_error=None if source.error is None else fault_document(source.error),
        failures=source.failures,
        revision=source.revision,
        created_at=source.created_at,
        links=SourceLinks(
            self_=path,
            rounds=f"{path}/rounds",
            dataset=None if source.dataset_id is None else f"/datasets/{source.dataset_id}",
        ),
    )
