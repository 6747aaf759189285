"""Values of datasets. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from headwater_client.html import DatasetHtml

Aggregate = Literal[
    "sum", "min", "max", "count", "last", "last_non_null", "first", "bool_and", "bool_or", "collect"
]
"""How the values of a field that have the same key become one value."""


BucketFunction = Literal["hash", "mod"]
"""The function from bucket key to bucket number."""


BucketMode = Literal["fixed", "dynamic", "key_dynamic", "unaware", "postpone"]
"""How a row finds its file group."""


ChangelogProducer = Literal["full", "input", "deferred", "none"]
"""How the change feed is made. `full`: the rows before and after, found at write time. `input`: the rows as they were
sent. `deferred`: found at compaction, which also assigns their offsets. `none`: there is no feed.
"""


ClusterOrder = Literal["linear", "z_order"]
"""The order of rows by several columns: lexicographic, or along a Z-order curve of all columns."""


FileCompression = Literal["zstd", "lz4"]
"""How the columns of data files and changelog files are compressed."""


IndexType = Literal["bucket", "simple", "bloom", "record"]
"""How a key is found among the files of its file group."""


Late = Literal["accept", "quarantine", "drop"]
"""What happens to the late rows of an insert or an upsert."""


MergeMode = Literal["event_time", "commit_time", "first", "partial", "aggregate"]
"""What happens when a row has the key of a live row."""


TableType = Literal["copy_on_write", "merge_on_read"]
"""How an upsert is stored: as new base files, or in log files that are merged with the base files on read."""


class AddField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="add"):
    """Adds a field behind the others. The field is nullable: existing rows have no value for it."""

    field: CreateField
    """The new field."""


class AnalysisPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The table is analyzed after its first commit, and again once it reaches one of these limits; null is no limit."""

    changed_ratio: float | None = 0.2
    """The changes of the feed since the last analysis, to the rows at that time: 0.2 is one change for five rows. At
    least 1,000 changes, so that a small table is not analyzed after every write. Not reached by a dataset without a
    feed; null for no such limit.
    """
    versions: int | None = None
    """The number of versions since the last analysis; null for no such limit."""


class BatchTagPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A version that has a batch of a writer is tagged `batch-` and its number, in its commit. The latest `keep` such
    tags are kept.
    """

    keep: int = 100
    """The number of such tags that are kept, 1 to 10,000."""


class BrokenReader(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a change of the schema breaks, and what to do about it."""

    column: str
    """The column, by its name before the change."""
    detail: str
    """What the change does to it."""
    kind: str
    """What it is. The grants of a `key` name the column."""
    id: str
    """Its id."""
    name: str | None
    """Its name; null for one without."""
    action: str
    """What to do about it."""


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """The distribution of rows over file groups and, within a group, over buckets."""

    mode: str
    """How a row finds its file group."""
    count: int | None
    """The file groups of a partition (of the dataset, under `key_dynamic`); null where buckets are halved as they grow.
    """
    key: tuple[str, ...] = ()
    """The fields that are hashed; empty for the record key."""
    function: str | None = None
    """The function from the values of the key to the number of a bucket."""
    target_rows: int | None = None
    """A file group of a dynamic mode opens another bucket once its buckets have this number of live rows. Without a
    count, a bucket is halved once it has more.
    """
    max_buckets: int | None = None
    """The greatest number of buckets of a file group; null for no limit."""
    fixed_now: bool = False
    """Postponed rows get one of `count` buckets at once."""
    shuffle_by_partition: bool = False
    """Append-only: the rows of one write and partition go to one file."""


class Changelog(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the change feed. Without a retention its changes never expire."""

    producer: str | None = None
    """How the changes are computed."""
    retention: Retention | None = None
    """The retention of changes; null never expires."""
    vocabulary: Vocabulary | None = None
    """The names of the system columns."""


class ChangelogPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Small changelog files of consecutive commits are merged: `small_files` or more, each `seconds` old or older."""

    small_files: int = 24
    """The number of small changelog files in a row from which on they are merged."""
    seconds: int = 10
    """The age from which on a changelog file is merged."""


class ClusteringPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Keeps rows ordered by `columns`: a file group is clustered once it has this number of unordered bytes."""

    columns: tuple[str, ...]
    """The columns to order by, 1 to 8; no lists, maps or structs."""
    order: str | None = None
    """How the order of several columns is combined; by default `linear`."""
    unclustered_bytes: int = 67108864
    """A file group is clustered once this number of its bytes is not in this order; without a record key a partition,
    all its groups together.
    """


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a dataset."""

    name: str
    """Its name."""
    type: str
    """Its type."""
    nullable: bool
    """Whether it may contain nulls."""
    doc: str | None
    """Its description."""


class ColumnReader(msgspec.Struct, frozen=True, kw_only=True):
    """Something that names columns of the dataset."""

    kind: str
    """What it is. A `key` names columns in its grants."""
    id: str
    """Its id."""
    name: str | None
    """Its name; of a webhook its description, or the host of its URL; null for one without."""
    columns: tuple[str, ...]
    """The columns that it names, in alphabetical order."""
    every_column: bool
    """Whether it has all other columns, too, whichever there are."""


class Columns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a dataset, in order."""

    fields: tuple[Column, ...]
    """The columns."""


class CompactionPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A file group is compacted once it reaches any of these limits; null is no limit. `logs`: the number of its logs
    or postponed writes. `log_ratio`: their bytes to those of its base files. `deleted_ratio`: rows that deletion
    vectors delete, to all rows of its base files. Ratios count once a quarter of `target_bytes` can be folded.
    `small_files`: the number of files of a bucket (of a partition, without a key) that are smaller than that.
    `seconds`: the age of its oldest log or postponed write.
    """

    logs: int | None = 16
    """The number of logs or postponed writes of a file group."""
    log_ratio: float | None = 1.0
    """The bytes of its logs to those of its base files, once a quarter of `target_bytes` can be folded."""
    deleted_ratio: float | None = 0.5
    """The rows that deletion vectors delete, to all rows of its base files, once a quarter of `target_bytes` can be
    folded.
    """
    small_files: int | None = 32
    """The number of files of a bucket (of a partition, without a key) that are smaller than a quarter of
    `target_bytes`.
    """
    seconds: int | None = None
    """The age of its oldest log or postponed write."""


class CreateBucket(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The distribution of rows over file groups. Absent members get the default for the kind of dataset."""

    mode: BucketMode | None = None
    """How a row finds its file group; by default `fixed` with a record key and `unaware` without one."""
    count: int | None = None
    """The file groups of a partition (of the dataset, under `key_dynamic`). Without it, the buckets of mode `fixed` are
    halved as they grow, if writes look up old rows.
    """
    key: tuple[str, ...] = ()
    """The fields that are hashed; the record key by default."""
    function: BucketFunction | None = None
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


class CreateChangelog(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Settings of the change feed."""

    producer: ChangelogProducer | None = None
    """How the changes are computed."""
    retention: CreateRetention | None = None
    """The retention of changes; null never expires."""
    vocabulary: CreateVocabulary | None = None
    """The names of the system columns."""


class CreateField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A column of a registration."""

    name: str
    """The name of the column."""
    type: str
    """The type, such as `int64`, `string`, `decimal(12, 2)`, `timestamp` or `list<string>`."""
    nullable: bool = True
    """Whether the column accepts nulls. Fields of the record key never do."""
    doc: str | None = None
    """A description of the column for its users."""


class CreateRetention(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How long changes are kept: until they are older than `seconds`, or beyond the last `changes`."""

    seconds: int | None = None
    """Changes are kept until they are older; null for no limit of age."""
    changes: int | None = None
    """The number of latest changes that are kept; null for no limit of number."""


class CreateSchema(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The columns of a new dataset, in order."""

    fields: tuple[CreateField, ...]
    """The columns, in order."""


class CreateSequenceGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Fields of a partial merge that have an ordering field of their own."""

    ordering_field: str
    """The field whose greater value wins."""
    fields: tuple[str, ...]
    """The fields that the ordering field applies to."""


class CreateVocabulary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
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


class Dataset(DatasetHtml, msgspec.Struct, frozen=True, kw_only=True):
    """A dataset."""

    name: str
    """A unique name among the live datasets of the tenant."""
    target_bytes: int
    """The size at which a data file ends and the next one starts."""
    compression: str
    """How the columns of new files are compressed: `zstd` for small files, `lz4` for fast reads and writes."""
    description: str | None
    """What the dataset is, for its users: 1–4,096 characters; null for nothing."""
    labels: dict[str, str]
    """Its labels, by which lists select datasets: at most 64, with keys and values of at most 63 characters."""
    expected_every_seconds: int | None
    """The time in which a commit is expected, in seconds: the dataset is late after it. By default a dataset is late
    after three times the median gap between its writes.
    """
    id: str
    """Its id, which it keeps when it is renamed."""
    schema: Columns
    """Its columns."""
    record_key: tuple[str, ...]
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None
    """Of two rows with one key, the one with the larger value of this field wins; null for the one written last."""
    event_time_field: str | None
    """The field with the event time of a row; null for none."""
    partition_by: tuple[str, ...]
    """The fields, with their transforms, that the table is partitioned by."""
    table_type: str
    """How updates are stored."""
    bucket: Bucket
    """How rows are distributed to file groups."""
    index: Index | None
    """How keys are found among the files of a file group; null without a key."""
    merge_mode: str
    """How rows with the same key are merged."""
    sequence_groups: tuple[SequenceGroup, ...]
    """Groups of fields of a partial merge, each with an ordering field of its own."""
    aggregates: dict[str, str]
    """How the values of each field are aggregated."""
    delete_marker: str | None
    """A boolean field: an upserted row in which it is true deletes its key; null for none."""
    deletes: Deletes
    """What deletes leave."""
    changelog: Changelog
    """Settings of the change feed."""
    services: TableServices
    """The maintenance policies of the dataset."""
    watermark: Watermark | None
    """What the watermark of the feed is made of; null for none."""
    watermark_at: datetime | None
    """The watermark: rows with earlier event times are late. Null before the first event time, and without one."""
    version: int
    """The version of its last commit; its ETag."""
    next_offset: int
    """The number of changes so far: the offset of the next one."""
    earliest_offset: int
    """The first change that is kept."""
    earliest_version: int
    """The first version that is kept."""
    created_at: datetime
    """When it was registered."""
    committed_at: datetime | None
    """When its last commit was made; null before the first."""
    links: DatasetLinks
    """The paths of its resources."""
    broken: tuple[BrokenReader, ...] | None = None
    """In the response to a change: what the change of the schema has broken, and paused if it can pause. Absent if it
    has broken nothing.
    """
    read_with: tuple[ReadingExample, ...] | None = None
    """In the response to a request for one dataset: how engines read it as an Iceberg table."""


class DatasetLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a dataset's resources."""

    self_: str
    """The dataset."""
    writes: str
    """Its writes."""
    uploads: str
    """Its uploads."""
    changes: str
    """Its feed of changes."""
    rows: str
    """Its rows."""
    timeline: str
    """Its timeline."""
    files: str
    """Its data files."""
    partitions: str
    """Its partitions."""
    statistics: str
    """The statistics of its columns."""


class DatasetPage(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets by name."""

    items: tuple[Dataset, ...]
    """The datasets of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class DatasetSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the permanent ids of its fields."""

    id: int
    """Its id: the schemas of a dataset are counted from 1."""
    fields: tuple[Field, ...]
    """The columns, in order."""
    created_at: datetime
    """When it became the schema of the dataset."""
    readers: tuple[ColumnReader, ...] | None = None
    """What names columns of the dataset, as far as the key may see it. Absent of an earlier schema, and in lists."""


class Deletes(msgspec.Struct, frozen=True, kw_only=True):
    """What the deletes of a dataset leave: tombstones, with which rows that come later are compared."""

    keep_seconds: int
    """How long a tombstone lasts, in seconds from the commit of the delete; 0 leaves none."""


class DropField(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="drop"):
    """Drops a field. Its values stay readable at earlier versions."""

    name: str
    """The name of the field."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A column with the id that it keeps for ever."""

    id: int
    """The number that the column keeps for ever."""
    name: str
    """Its present name."""
    type: str
    """Its type."""
    nullable: bool = True
    """Whether it may hold nulls."""
    doc: str | None = None
    """What it holds, for its users."""
    member_ids: dict[str, int] = {}
    """The numbers of its members, by their paths: `element`, `key`, `value`, or the name of a member, joined by dots.
    Left out for a column without members.
    """


class HistoryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Earlier versions stay readable while they are among the last `versions`, or were current in the last `seconds`.
    At least one of the two is set. With both, a version expires once neither keeps it.
    """

    versions: int | None = None
    """This number of latest versions is kept, 1 or more; null: no version is kept for its number."""
    seconds: int | None = None
    """A version is kept if it was the latest at any time within this number of seconds, 0 or more; null: no version is
    kept for its age.
    """


class Index(msgspec.Struct, frozen=True, kw_only=True):
    """How keys are found among the files of a file group."""

    type: str
    """The kind of index."""


class MetastorePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The Hive table to which statistics of the partitions are reported. The operator configures the metastore. With
    `idle_seconds` nothing is reported until nothing was committed for that time, or until ten times that time after the
    first commit that was not reported.
    """

    database: str
    """The database of the metastore."""
    table: str
    """The table."""
    idle_seconds: int | None = None
    """The time without a commit after which the dataset is reported; null for at once."""


class PartitionDonePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A partition is done once nothing was written to it for `idle_seconds`. With `marker`, a file marks it as done."""

    idle_seconds: int | None = None
    """The seconds for which a partition must not have been written, from 1 to 2,147,483,647; null: partitions must be
    marked done explicitly.
    """
    marker: bool = False
    """Whether a file `_SUCCESS` in the folder of a partition marks it, too."""


class ReadingExample(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine reads a dataset as a table: a text to copy."""

    engine: str
    """The engine."""
    language: str
    """What the text is: `sql`, `python` or `shell`."""
    code: str
    """The text, with `YOUR_API_KEY` in the place of the key."""


class RelaxField(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="relax"
):
    """Makes a required field nullable."""

    name: str
    """The name of the field."""


class RenameField(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="rename"
):
    """Renames a field; it keeps its values."""

    name: str
    """The present name of the field."""
    to: str
    """The new name."""


class ReorderFields(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="reorder"
):
    """Changes the order of the fields. Lists each field once."""

    names: tuple[str, ...]
    """The names of all fields, in the new order."""


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """The least time that changes are kept. At least one of the two limits is set."""

    seconds: int | None = None
    """Changes are kept until they are older; null for no limit of age."""
    changes: int | None = None
    """The number of latest changes that are kept; null for no limit of number."""


class SchemaPage(msgspec.Struct, frozen=True, kw_only=True):
    """Schemas of a dataset, the latest first."""

    items: tuple[DatasetSchema, ...]
    """The schemas of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class SequenceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a partial merge that have an ordering field of their own."""

    ordering_field: str
    """The field whose greater value wins."""
    fields: tuple[str, ...]
    """The fields that the ordering field applies to."""


class TableServices(msgspec.Struct, frozen=True, kw_only=True):
    """The services that run for a dataset automatically; null disables a service."""

    compaction: CompactionPolicy | None = None
    """When file groups are compacted."""
    changelog: ChangelogPolicy | None = None
    """When small changelog files are merged."""
    clustering: ClusteringPolicy | None = None
    """The order in which rows are kept."""
    history: HistoryPolicy | None = None
    """The history of versions that is kept: those of the last week, by default; null for all versions."""
    timeline: TimelinePolicy | None = None
    """The part of the timeline that stays in the catalogue; null for all of it."""
    tags: TagPolicy | None = None
    """Which versions are tagged at the end of a period."""
    batch_tags: BatchTagPolicy | None = None
    """Whether the versions of batches are tagged."""
    partition_done: PartitionDonePolicy | None = None
    """When a partition is done."""
    metastore: MetastorePolicy | None = None
    """The Hive table to which partitions are reported."""
    analysis: AnalysisPolicy | None = None
    """When the distinct values of columns are counted; never, if it is left out."""


class TagPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """After each period its last version is tagged with the period's name. The latest `keep` such tags are kept."""

    period: str
    """The periods whose last versions are tagged."""
    keep: int | None = None
    """The number of such tags that are kept; null for all."""


class TimelinePolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The latest `instants` of the timeline stay in the catalogue; earlier ones are archived, and stay readable."""

    instants: int = 10000
    """The number of instants that stay in the catalogue."""


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True):
    """The names of the feed's system columns, in flat tables and as members of JSON objects."""

    offset: str = "offset"
    """The offset of a change."""
    op: str = "op"
    """The operation of the change."""
    system_time: str = "system_time"
    """The time of the commit."""
    event_time: str = "event_time"
    """The event time of the row."""
    version: str = "version"
    """The version of the commit."""
    corrects_offset: str = "corrects_offset"
    """The offset of the change that this one retracts."""


class Watermark(msgspec.Struct, frozen=True, kw_only=True):
    """The watermark of a feed: how far events are complete, by the greatest event time that was written."""

    field: str
    """The field with the event time: a date or a timestamp."""
    delay_seconds: int = 0
    """How far the watermark stays behind the greatest event time, in seconds."""
    late: str | None = None
    """What happens to rows whose event time is before the watermark: they are written, quarantined or dropped."""


class WidenField(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="kind", tag="widen"
):
    """Changes the type of a field to one that holds every value of the old type. `explicit_cast` allows a date to
    become a timestamp, at the start of that day.
    """

    name: str
    """The name of the field."""
    type: str
    """The new type."""
    explicit_cast: bool = False
    """Allows a change of type that is a cast."""


SchemaChange = AddField | DropField | RenameField | WidenField | RelaxField | ReorderFields
