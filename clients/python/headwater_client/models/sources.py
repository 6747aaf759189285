"""Values of sources. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headwater_client.models.datasets import Watermark
from headwater_client.models.writes import ChangeOrder, OnError, Operation, RowCounts

SourceMode = Literal["once", "continuous"]
"""Whether a source ends once it has read everything, or waits for more."""


class CreateSource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A source to register."""

    name: str
    """A name that no other source of the tenant has."""
    dataset: str
    """The id or the name of the dataset that it writes to. With `create`, a name that no dataset has yet will do."""
    kind: str
    """What it reads, such as `files`."""
    config: dict[str, Any]
    """Where it reads, and how; its members depend on the kind."""
    mode: SourceMode | None = None
    """Whether it ends once it has read everything."""
    operation: Operation | None = None
    """The operation of its writes; by default `upsert` with a record key and `insert` without one."""
    order: ChangeOrder | None = None
    """Operation changelog: whether changes are applied as they arrive, or compared by the ordering field, which is the
    default of topics.
    """
    interval_seconds: float = 1.0
    """The pause before it checks for new input, once it has read everything."""
    create: CreateTable | None = None
    """Registers the dataset, if there is none, with the columns of what is read first."""
    on_error: OnError | None = None
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
    metadata: dict[str, str] = {}
    """The metadata of the commit of each round: texts by key, as of a write."""
    max_rows: int = 1000000
    """The most rows of a round, where the kind can count them before it reads."""
    max_bytes: int = 268435456
    """The most bytes of a round."""
    max_items: int = 1000
    """The most files or pages of a round."""
    position: dict[str, Any] = {}
    """Where it starts, as a position of its kind; `{}` for the `start` of the config."""


class CreateTable(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset that the first rows register."""

    record_key: tuple[str, ...] = ()
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None = None
    """Of two rows with one key, the one with the larger value of this field wins."""
    partition_by: tuple[str, ...] = ()
    """The partition fields, as of a dataset."""
    watermark: Watermark | None = None
    """The watermark, as of a dataset."""


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


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A source: data that arrive by themselves."""

    id: str
    """Its id."""
    name: str
    """Its name."""
    dataset: SourceDataset
    """The dataset that it writes to."""
    kind: str
    """What it reads."""
    config: dict[str, Any]
    """Where it reads, and how, without secrets."""
    mode: str
    """Whether it ends once it has read everything."""
    operation: str | None
    """The operation of its writes; null for that of the dataset."""
    order: str | None
    """The order of changes; null for that of the kind."""
    interval_seconds: float
    """The pause before it checks for new input, once it has read everything."""
    create: CreateTable | None
    """How it registers the dataset; null if it does not."""
    on_error: str
    """Whether bad records fail a round, or are quarantined."""
    merge_schema: bool
    """Whether a round adds columns that the dataset lacks, and widens types."""
    filter_duplicates: bool
    """Whether rows whose key is in the table already are left out."""
    transform: SourceTransform | None
    """The query that makes the rows; null to write what is read."""
    partition_done: bool
    """Whether partitions are marked as done once it has read everything."""
    metadata: dict[str, str]
    """The metadata of the commit of each round; `{}` for none."""
    max_rows: int
    """The most rows of a round."""
    max_bytes: int
    """The most bytes of a round."""
    max_items: int
    """The most files or pages of a round."""
    state: str
    """Whether it starts rounds by itself, or why not."""
    position: dict[str, Any]
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
    last_error: dict[str, Any] | None
    """Why its last round failed, or what it waits for to register its dataset; null otherwise."""
    failures: int
    """The number of failures in a row."""
    revision: int
    """Counts the changes by PATCH; its ETag."""
    created_at: datetime
    """When it was registered."""
    links: SourceLinks
    """The paths of its resources."""


class SourceDataset(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset of a source."""

    id: str | None
    """The id; null until the source has registered it."""
    name: str
    """The name."""


class SourceLag(msgspec.Struct, frozen=True, kw_only=True):
    """What a source has that was not read yet, as far as its kind knows: None for what it does not."""

    rows: int | None = None
    """Rows or messages."""
    items: int | None = None
    """Files."""
    bytes: int | None = None
    """Bytes."""
    seconds: float | None = None
    """The age of the oldest of it."""


class SourceLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a source's resources."""

    self_: str
    """The source."""
    rounds: str
    """Where a round is requested."""
    dataset: str | None
    """Its dataset; null until the source has registered it."""


class SourcePage(msgspec.Struct, frozen=True, kw_only=True):
    """Sources by name."""

    items: tuple[Source, ...]
    """The sources of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class SourceTransform(msgspec.Struct, frozen=True, kw_only=True):
    """The query that makes the rows of a source from what it reads."""

    sql: str
    """A SELECT over `source`, which makes one row or none from each row, in the SQL of views."""
    fields: tuple[TransformField, ...]
    """The columns of what the source reads."""


class TransformField(msgspec.Struct, frozen=True, kw_only=True):
    """A column of what a source reads; it may be null."""

    name: str
    """The name of the column."""
    type: str
    """Its type, as of a column of a dataset."""
