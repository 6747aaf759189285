"""Values of requests and replies.

Replies are decoded leniently: unknown members of a later release are ignored, and names of states and kinds are plain
strings, so that new ones break no client.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

Operation = Literal[
    "insert", "upsert", "bulk_insert", "delete", "overwrite", "snapshot", "changelog", "delete_partition"
]
TableType = Literal["copy_on_write", "merge_on_read"]
MergeMode = Literal["event_time", "commit_time", "first", "partial", "aggregate"]
IndexType = Literal["bucket", "simple", "bloom", "record"]
Producer = Literal["full", "input", "deferred", "none"]
Aggregate = Literal[
    "sum", "min", "max", "count", "last", "last_non_null", "first", "bool_and", "bool_or", "collect"
]
Format = Literal["json_rows", "ndjson", "csv", "arrow", "parquet"]
Op = Literal["+A", "-R", "-C", "+C"]

FINAL_STATES = frozenset({"succeeded", "failed", "cancelled"})


class NewField(msgspec.Struct, frozen=True, kw_only=True):
    """A column to register, such as `NewField(name="price", type="decimal(10, 2)")`."""

    name: str
    type: str
    nullable: bool = True
    doc: str | None = None


class Bucket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The distribution of rows over files; the service determines members that are not set."""

    mode: Literal["fixed", "dynamic", "key_dynamic", "unaware", "postpone"] | None = None
    count: int | None = None
    key: tuple[str, ...] = ()
    function: Literal["hash", "mod"] = "hash"
    target_rows: int | None = None
    max_buckets: int | None = None
    fixed_now: bool = False
    shuffle_by_partition: bool = False


class SequenceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a partial merge that have an ordering field of their own."""

    ordering_field: str
    fields: tuple[str, ...]


class Retention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The retention of a feed: until changes are older than `seconds`, or beyond the last `changes`."""

    seconds: int | None = None
    changes: int | None = None


class NewDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset to register. Without a record key it is append-only. `buckets`: short for `Bucket(count=…)`.

    `services`: its automatic table services, in JSON form.
    """

    name: str
    fields: tuple[NewField, ...]
    record_key: tuple[str, ...] = ()
    ordering_field: str | None = None
    event_time_field: str | None = None
    partition_by: tuple[str, ...] = ()
    buckets: int | None = None
    bucket: Bucket | None = None
    table_type: TableType | None = None
    index: IndexType | None = None
    merge_mode: MergeMode | None = None
    sequence_groups: tuple[SequenceGroup, ...] = ()
    aggregates: dict[str, Aggregate] = {}
    delete_marker: str | None = None
    producer: Producer | None = None
    retention: Retention | None = None
    target_bytes: int | None = None
    services: dict[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The JSON form of the registration, without members that are not set."""
        chosen = {
            "ordering_field": self.ordering_field,
            "event_time_field": self.event_time_field,
            "table_type": self.table_type,
            "index": None if self.index is None else {"type": self.index},
            "merge_mode": self.merge_mode,
            "sequence_groups": [msgspec.to_builtins(group) for group in self.sequence_groups] or None,
            "aggregates": self.aggregates or None,
            "delete_marker": self.delete_marker,
            "changelog": self._changelog() or None,
            "target_bytes": self.target_bytes,
            "services": self.services,
        }
        bucket = Bucket(count=self.buckets) if self.bucket is None else self.bucket
        return {
            "name": self.name,
            "schema": {"fields": [msgspec.to_builtins(field) for field in self.fields]},
            "record_key": list(self.record_key),
            "partition_by": list(self.partition_by),
            "bucket": msgspec.to_builtins(bucket),
            **{name: value for name, value in chosen.items() if value is not None},
        }

    def _changelog(self) -> dict[str, Any]:
        chosen = {
            "producer": self.producer,
            "retention": None if self.retention is None else msgspec.to_builtins(self.retention),
        }
        return {name: value for name, value in chosen.items() if value is not None}


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a dataset."""

    name: str
    type: str
    nullable: bool
    doc: str | None = None


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a dataset, in order."""

    fields: tuple[Column, ...]


class Field(Column, frozen=True, kw_only=True):
    """A column with its permanent id."""

    id: int


class Schema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema of a dataset. `id` counts a dataset's schemas from 1."""

    id: int
    fields: tuple[Field, ...]
    created_at: datetime


class SchemaPage(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas of a dataset, the latest first."""

    items: tuple[Schema, ...]
    next_page_token: str | None


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset. `version` is that of its last commit, `next_offset` the number of changes so far.

    Changes before `earliest_offset` have expired, and so have versions before `earliest_version` that have no name.
    `services`: its automatic table services, in JSON form.
    """

    id: str
    name: str
    schema: Columns
    record_key: tuple[str, ...]
    partition_by: tuple[str, ...]
    ordering_field: str | None
    event_time_field: str | None
    table_type: str
    merge_mode: str
    version: int
    next_offset: int
    created_at: datetime
    committed_at: datetime | None
    earliest_offset: int = 0
    earliest_version: int = 0
    services: dict[str, Any] = {}


class DatasetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets by name."""

    items: tuple[Dataset, ...]
    next_page_token: str | None


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the service's storage, for use by a write. `checksum` is XXH3-128, hexadecimal."""

    id: str
    size_bytes: int
    checksum: str
    created_at: datetime


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a running job: `done` of `total` tasks of the stage."""

    stage: str
    done: int
    total: int


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a write's rows; the five numbers add up to the rows that were sent."""

    inserted: int
    updated: int
    deleted: int
    unchanged: int
    quarantined: int


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job. The changes of its commit have the offsets `first_offset`–`last_offset`.

    A job that writes nothing has no operation, but a `result`. `actor`: the id of the API key that requested it, None
    for actions of the service.
    """

    id: str
    kind: str
    state: str
    operation: str | None
    progress: Progress
    attempts: int
    committed_version: int | None
    first_offset: int | None
    last_offset: int | None
    rows: RowCounts
    error: dict[str, Any] | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: dict[str, Any] | None = None
    actor: str | None = None

    @property
    def ended(self) -> bool:
        """Whether it has succeeded, failed, or was cancelled."""
        return self.state in FINAL_STATES


class Transaction(msgspec.Struct, frozen=True, kw_only=True):
    """Writes to several datasets that are committed together. `jobs`: one per write, in the order of the request."""

    id: str
    state: str
    jobs: tuple[Job, ...]
    error: dict[str, Any] | None
    created_at: datetime

    @property
    def ended(self) -> bool:
        """Whether it has succeeded, failed, or was cancelled."""
        return self.state in FINAL_STATES


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change of the feed. A `-C` is directly followed by the `+C` that replaces it.

    `corrects_offset`: for a `-C` or `-R`, the change whose values it retracts, if known.
    """

    offset: int
    op: Op
    version: int
    system_time: datetime
    event_time: str | None
    row: dict[str, Any]
    corrects_offset: int | None


class DatasetIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset by its id and its present name."""

    id: str
    name: str


class Correction(msgspec.Struct, frozen=True, kw_only=True):
    """The change at `offset` was retracted at offset `corrected_by`, of `version`, by a `-C` or a `-R`."""

    offset: int
    corrected_by: int
    op: str
    version: int
    system_time: datetime


class CorrectionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections in the order of the feed."""

    corrections: list[Correction]
    next_since: int
    pending: int
