"""A registration as the client sends it, before validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from app.kernel.format.dataset import (
    Aggregate,
    BucketFunction,
    BucketMode,
    ChangelogProducer,
    Deletes,
    IndexType,
    MergeMode,
    TableType,
    Watermark,
)
from app.kernel.format.definition.settings import DatasetSettings
from app.kernel.format.errors import FieldError, InvalidDataset
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.types import TypeSyntaxError, parse_columns

_OPENED_BY_SIZE: Final = (BucketMode.DYNAMIC, BucketMode.KEY_DYNAMIC, BucketMode.POSTPONE)


class CreateField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A column of a registration."""

    name: str
    """The name of the column."""
    type: str
    """The type, such as `int64`, `string`, `decimal(12, 2)`, `timestamp` or `list<string>`."""
    nullable: bool = True
    """Whether the column accepts nulls. Fields of the record key never do."""
    doc: str | None = None
    """A description of the column for its users."""


class CreateSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The columns of a new dataset, in order."""

    fields: list[CreateField]
    """The columns, in order."""


class CreateBucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The distribution of rows over file groups. Absent members get the default for the kind of dataset."""

    mode: BucketMode | None = None
    """How a row finds its file group; by default `fixed` with a record key and `unaware` without one."""
    count: int | None = None
    """The file groups of a partition (of the dataset, under `key_dynamic`). Without it, the buckets of mode `fixed` are
    halved as they grow, if writes look up old rows.
    """
    key: list[str] = []
    """The fields that are hashed; the record key by default."""
    function: BucketFunction = BucketFunction.HASH
    """The function from the values of the key to the number of a bucket."""
    target_rows: int | None = None
    """Dynamic modes: a file group opens another bucket once its buckets have this number of live rows. Mode `fixed`
    without `count`: a bucket with more rows is halved.
    """
    max_buckets: int | None = None
    """Dynamic modes: the greatest number of buckets of a file group; null for no limit."""
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
    """The number of latest changes that are kept; null for no limit of number."""


class CreateVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The names of the feed's system columns, in flat tables and as members of JSON objects. A column keeps its own
    name by default.
    """

    offset: str | None = None
    """The offset of a change."""
    op: str | None = None
    """The operation of the change."""
    system_time: str | None = None
    """The time of the commit."""
    event_time: str | None = None
    """The event time of the row."""
    version: str | None = None
    """The version of the commit."""
    corrects_offset: str | None = None
    """The offset of the change that this one retracts."""


class CreateChangelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the change feed."""

    producer: ChangelogProducer = ChangelogProducer.FULL
    """How the changes are computed."""
    retention: CreateRetention | None = None
    """The retention of changes; null never expires."""
    vocabulary: CreateVocabulary = CreateVocabulary()
    """The names of the system columns."""


class CreateSequenceGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a partial merge that have an ordering field of their own."""

    ordering_field: str
    """The field whose greater value wins."""
    fields: list[str]
    """The fields that the ordering field applies to."""


class CreateDataset(DatasetSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A registration of a dataset."""

    schema: CreateSchema
    """The columns."""
    record_key: list[str] = []
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None = None
    """Of two rows with one key, the one with the larger value of this field, or member of a struct, wins."""
    event_time_field: str | None = None
    """The field with the time at which a row's event happened."""
    partition_by: list[str] = []
    """The partition fields: fields, nested paths, and transforms such as `day(at)`."""
    table_type: TableType | None = None
    """How updates are stored; by default `merge_on_read` with a record key and `copy_on_write` without one."""
    bucket: CreateBucket | None = None
    """The distribution of rows over file groups."""
    index: CreateIndex | None = None
    """How keys are looked up; the default depends on the bucket mode."""
    merge_mode: MergeMode | None = None
    """What happens to rows with one key; `event_time` with an ordering field and `commit_time` without one, by
    default.
    """
    sequence_groups: list[CreateSequenceGroup] = []
    """Merge mode `partial`: fields that have an ordering field of their own."""
    aggregates: dict[str, Aggregate] = {}
    """Merge mode `aggregate`: how the values of each field become one value."""
    delete_marker: str | None = None
    """A boolean field: an upserted row in which it is true deletes its key."""
    deletes: Deletes | None = None
    """What deletes leave; by default tombstones that last a week, if rows are compared by an ordering field."""
    changelog: CreateChangelog = CreateChangelog()
    """Settings of the change feed."""
    services: TableServices = TableServices()
    """The table services that run automatically."""
    watermark: Watermark | None = None
    """The watermark of the feed; null for none."""

    @property
    def merged_by(self) -> MergeMode:
        """The merge mode, or its default."""
        return self.merge_mode or (MergeMode.EVENT_TIME if self.ordering_field else MergeMode.COMMIT_TIME)

    @property
    def stored_as(self) -> TableType:
        """The table type, or its default."""
        default = TableType.MERGE_ON_READ if self.record_key else TableType.COPY_ON_WRITE
        return self.table_type or default

    @property
    def logs(self) -> bool:
        """Whether writes with keys are stored in logs, so that no write looks up the rows that it replaces."""
        return (
            self.stored_as is TableType.MERGE_ON_READ
            and self.changelog.producer is not ChangelogProducer.FULL
        )

    @property
    def buckets(self) -> CreateBucket:
        """The distribution of rows, or its default."""
        return self.bucket or CreateBucket()

    @property
    def bucket_mode(self) -> BucketMode:
        """How a row finds its file group, or the default."""
        return self.buckets.mode or (BucketMode.FIXED if self.record_key else BucketMode.UNAWARE)

    @property
    def opens_by_size(self) -> bool:
        """Whether a file group opens another bucket once its buckets are full."""
        return self.bucket_mode in _OPENED_BY_SIZE and not self.buckets.fixed_now

    @property
    def halves(self) -> bool:
        """Whether its buckets are halved as they grow. Old rows are looked up then, so a write can move them."""
        return (
            bool(self.record_key)
            and self.bucket_mode is BucketMode.FIXED
            and self.buckets.count is None
            and not self.logs
        )


class CreateTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dataset that the first rows register."""

    record_key: list[str] = []
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None = None
    """Of two rows with one key, the one with the larger value of this field wins."""
    partition_by: list[str] = []
    """The partition fields, as of a dataset."""
    watermark: Watermark | None = None
    """The watermark, as of a dataset."""

    @property
    def moments(self) -> frozenset[str]:
        """The columns whose values are compared: texts that are times are better columns of times there."""
        names = (self.ordering_field, self.watermark.field if self.watermark else None)
        return frozenset(name for name in names if name is not None)

    def named(self, name: str, schema: CreateSchema) -> CreateDataset:
        """The registration under this name, with these columns."""
        return CreateDataset(
            name=name,
            schema=schema,
            record_key=self.record_key,
            ordering_field=self.ordering_field,
            partition_by=self.partition_by,
            watermark=self.watermark,
        )


class CreateWithRows(CreateTable, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The dataset that a write registers."""

    schema: CreateSchema | None = None
    """The columns; by default those of the rows."""
    merge_mode: MergeMode | None = None
    """What happens to rows with one key, as of a dataset."""

    def named(self, name: str, schema: CreateSchema) -> CreateDataset:
        """See `CreateTable`."""
        return msgspec.structs.replace(super().named(name, schema), merge_mode=self.merge_mode)


def stated_schema(text: str) -> CreateSchema:
    """The columns that a query parameter states, such as `id:int64,price:decimal(9,2)`. Raises InvalidDataset."""
    try:
        columns = parse_columns(text)
    except TypeSyntaxError as error:
        what = f"expected columns in the form id:int64,price:decimal(9,2): {error}"
        raise InvalidDataset(what, [FieldError(pointer="/schema", detail=what)]) from None
    return CreateSchema(fields=[CreateField(name=name, type=str(data_type)) for name, data_type in columns])


def schema_of(types: Mapping[str, str]) -> CreateSchema:
    """Columns with these types, by name."""
    return CreateSchema(fields=[CreateField(name=name, type=type_) for name, type_ in types.items()])
