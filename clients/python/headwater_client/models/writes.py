"""Values of writes. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headwater_client.models.datasets import CreateSchema, MergeMode, Watermark

ChangeOrder = Literal["arrival", "ordering_field"]
"""How changes are applied: each as it arrives, or only if its ordering value is not less than that of the row."""


Format = Literal["json_rows", "ndjson", "csv", "arrow", "parquet"]
"""The format of an input's rows. `json_rows` is one JSON array of row objects."""


OnError = Literal["fail", "quarantine"]
"""What happens to a write with bad records: it fails, or they are quarantined."""


Operation = Literal[
    "insert", "upsert", "bulk_insert", "delete", "delete_partition", "overwrite", "snapshot", "changelog"
]
"""What a write does with its rows."""


OverwriteScope = Literal["table", "partitions", "filter"]
"""The scope of an overwrite: the table, the partitions of its rows, or the rows that a filter matches."""


SaveMode = Literal["append", "overwrite", "ignore", "error_if_exists"]
"""What a write does if the dataset already has data."""


class BucketRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a key finds its file group: the function of the key fields, modulo the count."""

    mode: str
    """How a row finds its file group."""
    function: str
    """From the values of the key to a number."""
    key: tuple[str, ...]
    """The fields that are hashed."""
    count: int | None
    """The file groups of a partition; null where buckets are halved as they grow."""


class CreateUploadLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An upload whose bytes are sent to the storage."""

    size_bytes: int
    """The number of bytes."""
    sha256: str
    """The SHA-256 of the bytes, hexadecimal."""


class CreateWithRows(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The dataset that a write registers."""

    record_key: tuple[str, ...] = ()
    """The fields that identify a row; empty for an append-only dataset."""
    ordering_field: str | None = None
    """Of two rows with one key, the one with the larger value of this field wins."""
    partition_by: tuple[str, ...] = ()
    """The partition fields, as of a dataset."""
    watermark: Watermark | None = None
    """The watermark, as of a dataset."""
    schema: CreateSchema | None = None
    """The columns; by default those of the rows."""
    merge_mode: MergeMode | None = None
    """What happens to rows with one key, as of a dataset."""


class DatasetIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset by its id and its present name."""

    id: str
    """The id, which the dataset keeps when it is renamed."""
    name: str
    """The name."""


class ExplainedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live file of a file group."""

    path: str
    """Its path on storage."""
    kind: str
    """What it holds."""
    partition_path: str
    """Its partition."""
    bucket: int
    """Its bucket."""
    size_bytes: int
    """Its size."""
    live_rows: int
    """Its rows that no deletion vector has taken out."""
    read: bool
    """Whether the write reads it."""
    answer: str
    """Why it is read, or not."""


class ExplainedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that the write touches."""

    file_group: str
    """Its id."""
    partition_path: str
    """Its partition."""
    number: int
    """What the bucket rule gives for its keys."""
    rows: int
    """The rows of the write that go to it."""
    storing: str
    """How they are stored."""
    reason: str
    """Why they are stored so."""
    files: tuple[ExplainedFile, ...]
    """Its live files."""
    rewritten_bytes: int
    """The size of the files that are rewritten."""
    marked_files: tuple[str, ...]
    """The files in which deletion vectors take out the rows of the keys."""
    keys: tuple[ExplainedKey, ...]
    """The keys of the rows."""


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the write."""

    row: int
    """The number of the row in the write."""
    key: dict[str, Any]
    """The values of the key fields."""
    hash: str | None
    """The XXH64 of the canonical bucket key, hexadecimal; null under function `mod`."""
    live: LiveRow | None
    """The row that the key has now; null for none."""
    tombstone: KeyTombstone | None
    """The delete that keeps rows of the key with a lesser ordering value away; null for none."""
    effect: str | None
    """What the write would do to the key; null where that is decided by a compaction."""
    partition_path: str | None
    """The partition in which the row would be stored; null where that is decided later, or no row is stored."""
    bucket: int | None
    """The bucket in which the row would be stored; null where that is decided later, or no row is stored."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """A job."""

    id: str
    """Its id."""
    dataset: DatasetIdentity | None = None
    """Its dataset, also one that was deleted."""
    kind: str
    """What it does."""
    state: str
    """Where it is in its life."""
    operation: str | None
    """The operation of a write; null for other kinds."""
    metadata: dict[str, str]
    """Of a write, the metadata of its commit; `{}` for none."""
    progress: Progress
    """How far it is."""
    attempts: int
    """How often it was started."""
    committed_version: int | None
    """The version with its effect: the one that it committed; of a write that changed no row, such as a redrive of
    records that are still bad, the latest one then, which another job may have committed. Null before its end, and for
    jobs that commit none.
    """
    first_offset: int | None
    """The offset of the first change of its commit, which it may share with writes accepted at the same time; null if
    no row changed.
    """
    last_offset: int | None
    """The offset of the last change of its commit. Null if no row changed."""
    rows: RowCounts
    """What it did to rows."""
    result: dict[str, Any] | None
    """What it produced besides rows; its members depend on the kind. That of a write has `ignored_fields`, the unknown
    fields that were null in every row, `late`, its late rows where the dataset has a watermark, and `winner_version`,
    the version after which it was planned again the last time.
    """
    error: dict[str, Any] | None
    """Why it failed."""
    timings: dict[str, int] = {}
    """What its stages took, in milliseconds, as far as they are known: `accept`, `wait` and `total`; of a write that
    has succeeded also `claim`, `decode`, `plan`, `merge` with its part `lookup`, and `commit`, which writes may share.
    """
    replans: int = 0
    """How often a write was planned again, since another job had changed the same rows before its commit."""
    created_at: datetime
    """When it was accepted."""
    started_at: datetime | None
    """When its last attempt started."""
    finished_at: datetime | None
    """When it ended."""
    actor: str | None
    """The id of the API key, or of the subject of the token, that requested it; null for the service itself."""
    links: JobLinks
    """The paths of its resources."""


class JobLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a job's resources."""

    self_: str
    """The job."""
    events: str
    """Its state changes, as server-sent events."""
    dataset: str
    """Its dataset."""
    transaction: str | None
    """The transaction that it is part of; null for none."""


class KeyTombstone(msgspec.Struct, frozen=True, kw_only=True):
    """The tombstone of a key: rows with a lesser ordering value change nothing."""

    ordering_value: Any
    """The ordering value of the delete."""
    version: int | None
    """The version of the delete; null where not known."""
    until: datetime
    """The time of the last commit whose rows are compared with it."""


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row that a key has now."""

    version: int | None
    """The version that gave it its values; null where not known."""
    offset: int | None
    """The offset of the change that gave it its values; null where not known."""
    file: str | None
    """The file that it is in; null for a row that a log has put there."""
    position: int | None
    """Its position in the file; null for a row that a log has put there."""


class Overwrite(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The scope of an overwrite."""

    scope: OverwriteScope | None = None
    """What is replaced."""
    where: str | None = None
    """Scope `filter`: the rows for which this condition is true."""


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a running job is."""

    stage: str
    """What it does now."""
    done: int = 0
    """The tasks of the stage that are done."""
    total: int = 0
    """All tasks of the stage."""
    waiting_for: str | None = None
    """What a queued job waits for since its last attempt: `storage`, `space` (in the storage), `database`, or `sources`
    (other rounds that read from elsewhere); null for its turn only. It is tried again by itself, after a minute at
    most.
    """


class RowCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The effects of a write's rows; the six numbers add up to the rows that were sent."""

    inserted: int = 0
    """Rows whose key was new."""
    updated: int = 0
    """Rows that replaced the row of their key."""
    deleted: int = 0
    """Rows that deleted the row of their key."""
    unchanged: int = 0
    """Rows that changed nothing, for another reason than `late`."""
    quarantined: int = 0
    """Rows that were rejected and quarantined."""
    late: int = 0
    """Rows that changed nothing because their ordering value is less than that of the row or delete of their key."""


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Stored bytes that a write can refer to."""

    id: str
    """Its id."""
    size_bytes: int
    """The number of bytes."""
    checksum: str
    """The XXH3-128 of the bytes, hexadecimal."""
    created_at: datetime
    """When it was stored."""


class UploadLink(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes of an upload are sent. Who has the URL can send them, without an API key."""

    id: str
    """The id of the upload, for writes that name it."""
    method: str
    """The method of the request."""
    url: str
    """The URL of the request, in the storage."""
    headers: dict[str, str]
    """The headers that the request must have."""
    expires_at: datetime
    """When the storage no longer accepts the request."""


class WriteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a write would touch if it ran now."""

    version: int
    """The version that the explanation is of."""
    operation: str
    """What the write does."""
    index: str | None
    """How keys are found; null without a key."""
    bucket: BucketRule
    """How keys find their file groups."""
    group_count: int
    """How many file groups the write touches; the first of them are listed."""
    file_groups: tuple[ExplainedGroup, ...]
    """The file groups."""
