"""A registration as the client sends it, before validation."""

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


class CreateField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column as a user registers it."""

    name: str
    """The name of the column."""
    type: str
    """The type, such as `int64`, `string`, `decimal(12, 2)`, `timestamp` or `list<string>`."""
    nullable: bool = True
    """Whether the column may hold nulls. Fields of the record key never do."""
    doc: str | None = None
    """What the column holds, for its users."""


class CreateSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a new dataset, in order."""

    fields: list[CreateField]
    """The columns, in order."""


class CreateBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows are spread over file groups; absent parts get the default for the kind of dataset."""

    mode: BucketMode | None = None
    """How a row finds its file group; `fixed` with a record key and `unaware` without one, by default."""
    count: int | None = None
    """The file groups of a partition (of the dataset, under `key_dynamic`)."""
    key: list[str] = []
    """The fields that are hashed; the record key by default."""
    function: BucketFunction = BucketFunction.HASH
    """From the values of the key to the number of a bucket."""
    target_rows: int | None = None
    """Dynamic modes: a file group opens another bucket once its buckets have so many live rows."""
    max_buckets: int | None = None
    """Dynamic modes: the most buckets of a file group; null for no limit."""
    fixed_now: bool = False
    """Mode `postpone`: postponed rows get one of `count` buckets at once."""
    shuffle_by_partition: bool = False
    """Append-only: the rows of one write and partition go to one file."""


class CreateIndex(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How keys are found among the files of a file group."""

    type_: IndexType = msgspec.field(name="type")
    """The kind of index."""


class CreateRetention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long changes are kept: until they are older than `seconds`, or beyond the last `changes`."""

    seconds: int | None = None
    """Changes are kept until they are older; null for no limit of age."""
    changes: int | None = None
    """The last so many changes are kept; null for no limit of number."""


class CreateVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the feed's system columns where it is a flat table; each keeps its own unless another is given."""

    offset: str | None = None
    """The offset of a change."""
    op: str | None = None
    """Its operation."""
    system_time: str | None = None
    """When it was committed."""
    event_time: str | None = None
    """When it happened."""
    version: str | None = None
    """The version that it is part of."""
    corrects_offset: str | None = None
    """The offset of the change that it corrects."""


class CreateChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the change feed as a user registers them."""

    producer: ChangelogProducer = ChangelogProducer.FULL
    """How the changes are found."""
    retention: CreateRetention | None = None
    """How long changes are kept; null keeps them for ever."""
    vocabulary: CreateVocabulary = CreateVocabulary()
    """The names of the system columns."""


class CreateSequenceGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a partial merge that follow an ordering field of their own."""

    ordering_field: str
    """The field whose larger value wins."""
    fields: list[str]
    """The fields that follow it."""


class CreateDataset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A registration as a user sends it."""

    name: str
    """A name that no other live dataset of the tenant has."""
    schema: CreateSchema
    """The columns."""
    record_key: list[str] = []
    """The fields that identify a row; none for an append-only dataset."""
    ordering_field: str | None = None
    """Of two rows with one key, the one with the larger value of this field wins."""
    event_time_field: str | None = None
    """The field that says when a row happened."""
    partition_by: list[str] = []
    """What the table is partitioned by: fields, nested paths, and transforms such as `day(at)`."""
    table_type: TableType = TableType.COPY_ON_WRITE
    """How updates are stored."""
    bucket: CreateBucket | None = None
    """How rows are spread over file groups."""
    index: CreateIndex | None = None
    """How keys are found; chosen for the bucket mode by default."""
    merge_mode: MergeMode | None = None
    """What happens to rows with one key; `event_time` with an ordering field and `commit_time` without one, by
    default.
    """
    sequence_groups: list[CreateSequenceGroup] = []
    """Merge mode `partial`: fields that follow ordering fields of their own."""
    aggregates: dict[str, Aggregate] = {}
    """Merge mode `aggregate`: how the values of each field become one."""
    delete_marker: str | None = None
    """A boolean field: an upserted row in which it is true deletes its key."""
    changelog: CreateChangelog = CreateChangelog()
    """Settings of the change feed."""
    target_bytes: int = DEFAULT_TARGET_BYTES
    """The size at which a data file is ended and the next begun."""
    services: TableServices = TableServices()
    """What is done for the dataset by itself."""
