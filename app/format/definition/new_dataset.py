"""A registration as a user sends it, before any rule was checked."""

from __future__ import annotations

import msgspec

from app.format.dataset import (
    DEFAULT_TARGET_BYTES,
    Aggregate,
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    IndexType,
    MergeMode,
    TableType,
)
from app.format.policies import TableServices


class NewField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column as a user registers it."""

    name: str
    type: str
    nullable: bool = True
    doc: str | None = None


class NewSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a new dataset, in order."""

    fields: list[NewField]


class NewBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows are spread over file groups; absent parts get the default for the kind of dataset."""

    mode: BucketMode | None = None
    count: int | None = None
    key: list[str] = []
    function: BucketFunction = BucketFunction.HASH
    target_rows: int | None = None
    max_buckets: int | None = None
    fixed_now: bool = False
    shuffle_by_partition: bool = False


class NewIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How keys are found among the files of a file group."""

    type_: IndexType = msgspec.field(name="type")


class NewRetention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long changes are kept: until they are older than `seconds`, or beyond the last `changes`."""

    seconds: int | None = None
    changes: int | None = None


class NewVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the feed's system columns where it is a flat table; each keeps its own unless another is given."""

    offset: str | None = None
    op: str | None = None
    system_time: str | None = None
    event_time: str | None = None
    version: str | None = None
    corrects_offset: str | None = None


class NewChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the change feed as a user registers them."""

    producer: ChangelogProducer = ChangelogProducer.FULL
    retention: NewRetention | None = None
    vocabulary: NewVocabulary = NewVocabulary()


class NewSequenceGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a partial merge that follow an ordering field of their own."""

    ordering_field: str
    fields: list[str]


class NewDataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A registration as a user sends it."""

    name: str
    schema: NewSchema
    record_key: list[str] = []
    ordering_field: str | None = None
    event_time_field: str | None = None
    partition_by: list[str] = []
    table_type: TableType = TableType.COPY_ON_WRITE
    bucket: NewBucket | None = None
    index: NewIndex | None = None
    merge_mode: MergeMode | None = None
    sequence_groups: list[NewSequenceGroup] = []
    aggregates: dict[str, Aggregate] = {}
    delete_marker: str | None = None
    changelog: NewChangelog = NewChangelog()
    target_bytes: int = DEFAULT_TARGET_BYTES
    services: TableServices = TableServices()
