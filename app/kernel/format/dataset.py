"""The definition of a dataset: its schema, its key, and how its rows are laid out and merged.

`app.kernel.format.definition.dataset_definition.define_dataset` creates a definition and checks every rule. Code that
uses a definition need not check them again.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Final

import msgspec

from app.kernel.format.definition.settings import TableSettings
from app.kernel.format.policies import TableServices
from app.kernel.format.schema.schema import Schema

BUCKETS_MAX: Final = 4_096
DEFAULT_BUCKETS: Final = 4
DEFAULT_TARGET_ROWS: Final = 2_000_000
# The first buckets of a partition are small, so that a load of some size uses several cores. Later ones are large: each
# bucket that a small write touches is a task.
FIRST_BUCKETS: Final = 4
FIRST_HALVED_ROWS: Final = 300_000
FIRST_HALVED_BYTES: Final = 128 * 1024 * 1024
HALVED_BYTES: Final = 512 * 1024 * 1024
HALVED_MAX: Final = 1_024
_TEN_YEARS: Final = 10 * 366 * 24 * 60 * 60
WATERMARK_DELAY_MAX: Final = _TEN_YEARS
KEEP_SECONDS_MAX: Final = _TEN_YEARS
DEFAULT_KEEP_SECONDS: Final = 7 * 24 * 60 * 60


class TableType(str, Enum):
    """How an upsert is stored: as new base files, or in log files that are merged with the base files on read."""

    COPY_ON_WRITE = "copy_on_write"
    MERGE_ON_READ = "merge_on_read"


class BucketMode(str, Enum):
    """How a row finds its file group."""

    FIXED = "fixed"
    DYNAMIC = "dynamic"
    KEY_DYNAMIC = "key_dynamic"
    UNAWARE = "unaware"
    POSTPONE = "postpone"


class BucketFunction(str, Enum):
    """The function from bucket key to bucket number."""

    HASH = "hash"
    MOD = "mod"


class IndexType(str, Enum):
    """How a key is found among the files of its file group."""

    BUCKET = "bucket"
    SIMPLE = "simple"
    BLOOM = "bloom"
    RECORD = "record"


class MergeMode(str, Enum):
    """What happens when a row has the key of a live row."""

    EVENT_TIME = "event_time"
    COMMIT_TIME = "commit_time"
    FIRST = "first"
    PARTIAL = "partial"
    AGGREGATE = "aggregate"


class Aggregate(str, Enum):
    """How the values of a field that have the same key become one value."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"
    COUNT = "count"
    LAST = "last"
    LAST_NON_NULL = "last_non_null"
    FIRST = "first"
    BOOL_AND = "bool_and"
    BOOL_OR = "bool_or"
    COLLECT = "collect"


class ChangelogProducer(str, Enum):
    """How the change feed is made.

    `full`: the rows before and after, found at write time. `input`: the rows as they were sent. `deferred`: found at
    compaction, which also assigns their offsets. `none`: there is no feed.
    """

    FULL = "full"
    INPUT = "input"
    DEFERRED = "deferred"
    NONE = "none"


class Bucket(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The distribution of rows over file groups and, within a group, over buckets."""

    mode: BucketMode
    """How a row finds its file group."""
    count: int | None
    """The file groups of a partition (of the dataset, under `key_dynamic`); null where buckets are halved as they grow.
    """
    key: tuple[str, ...] = ()
    """The fields that are hashed; empty for the record key."""
    function: BucketFunction = BucketFunction.HASH
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

    @property
    def halves(self) -> bool:
        """Whether buckets are halved as they grow."""
        return self.count is None

    @property
    def segments(self) -> int:
        """The number of segments of the key hashes: `count`, or the most buckets that halving makes."""
        return HALVED_MAX if self.count is None else self.count

    @property
    def opens_by_size(self) -> bool:
        """Whether a file group has several buckets, and opens another when they are full."""
        return self.target_rows is not None and not self.halves


class Retention(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The least time that changes are kept. At least one of the two limits is set."""

    seconds: int | None = None
    """Changes are kept until they are older; null for no limit of age."""
    changes: int | None = None
    """The number of latest changes that are kept; null for no limit of number."""


class Vocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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

    def of(self, column: str) -> str:
        """The name of a system column. Any other name is returned unchanged."""
        return str(getattr(self, column)) if column in self.__struct_fields__ else column


DEFAULT_VOCABULARY: Final = Vocabulary()


def json_member_names(vocabulary: Vocabulary) -> dict[str, str]:
    """The names of system columns as members of JSON objects, by column.

    A name that is another member's is `_hw_<name>` instead.
    """
    names = {name: vocabulary.of(name) for name in Vocabulary.__struct_fields__}
    return {name: f"_hw_{name}" if member in ("row", "before") else member for name, member in names.items()}


class Changelog(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of the change feed. Without a retention its changes never expire."""

    producer: ChangelogProducer = ChangelogProducer.FULL
    """How the changes are computed."""
    retention: Retention | None = None
    """The retention of changes; null never expires."""
    vocabulary: Vocabulary = DEFAULT_VOCABULARY
    """The names of the system columns."""


class SequenceGroup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fields of a partial merge that have an ordering field of their own."""

    ordering_field: str
    """The field whose greater value wins."""
    fields: tuple[str, ...]
    """The fields that the ordering field applies to."""


class Late(str, Enum):
    """What happens to the late rows of an insert or an upsert."""

    ACCEPT = "accept"
    QUARANTINE = "quarantine"
    DROP = "drop"


class Watermark(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The watermark of a feed: how far events are complete, by the greatest event time that was written."""

    field: str
    """The field with the event time: a date or a timestamp."""
    delay_seconds: Annotated[int, msgspec.Meta(ge=0, le=WATERMARK_DELAY_MAX)] = 0
    """How far the watermark stays behind the greatest event time, in seconds."""
    late: Late = Late.ACCEPT
    """What happens to rows whose event time is before the watermark: they are written, quarantined or dropped."""


class Deletes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the deletes of a dataset leave: tombstones, with which rows that come later are compared."""

    keep_seconds: Annotated[int, msgspec.Meta(ge=0, le=KEEP_SECONDS_MAX)]
    """How long a tombstone lasts, in seconds from the commit of the delete; 0 leaves none."""


def has_tombstones(ordering_field: str | None, merge_mode: MergeMode) -> bool:
    """Whether deletes may leave tombstones: whether rows of a key are compared by the values of an ordering field."""
    by_value = merge_mode in (MergeMode.EVENT_TIME, MergeMode.PARTIAL, MergeMode.AGGREGATE)
    return ordering_field is not None and by_value


class DatasetDefinition(TableSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A checked definition. A dataset without a record key is append-only.

    `ordering_field`: a field, or a member of a struct (`app.kernel.format.partition.members`). `partition_by`: fields,
    nested paths and transforms in their text form. `index` is None without a key. `delete_marker`: a boolean field; an
    upserted row where it is true deletes its key.
    """

    schema: Schema
    record_key: tuple[str, ...]
    ordering_field: str | None
    event_time_field: str | None
    partition_by: tuple[str, ...]
    table_type: TableType
    bucket: Bucket
    merge_mode: MergeMode
    changelog: Changelog
    index: IndexType | None = None
    sequence_groups: tuple[SequenceGroup, ...] = ()
    aggregates: dict[str, Aggregate] = {}
    delete_marker: str | None = None
    # A definition that was stored before there were table services has none, and keeps all versions as it did.
    services: TableServices = TableServices(history=None)
    watermark: Watermark | None = None
    # A definition that was stored before there were tombstones has none.
    deletes: Deletes = Deletes(keep_seconds=0)

    @property
    def keep_seconds(self) -> int:
        """How long the tombstones of its deletes last, in seconds; 0 if deletes leave none."""
        return self.deletes.keep_seconds

    @property
    def keyed(self) -> bool:
        """Whether rows have a key, so that they can be updated and deleted."""
        return bool(self.record_key)

    @property
    def bucket_key(self) -> tuple[str, ...]:
        """The fields that determine a row's bucket."""
        return self.bucket.key or self.record_key

    @property
    def has_one_slot(self) -> bool:
        """Whether all rows of a file group have one partition and one bucket."""
        return not self.bucket.opens_by_size and self.bucket.mode is not BucketMode.KEY_DYNAMIC

    @property
    def looks_up(self) -> bool:
        """Whether a write looks up the rows that it replaces. Otherwise they are merged on read or at compaction."""
        return self.table_type is TableType.COPY_ON_WRITE or self.changelog.producer is ChangelogProducer.FULL
