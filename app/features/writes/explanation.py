"""Explanations: what a write would touch, and why."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from app.kernel.commit.storing import Storing
from app.kernel.commit.write_effect import WriteEffect
from app.kernel.format.dataset import BucketFunction, BucketMode, IndexType
from app.kernel.format.file_group import FileKind
from app.kernel.format.index.index_answer import FileAnswer
from app.kernel.format.index.live_key import KeyTombstone, RowOrigin
from app.kernel.format.operation import Operation


class BucketRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a key finds its file group: the function of the key fields, modulo the count."""

    mode: BucketMode
    """How a row finds its file group."""
    function: BucketFunction
    """From the values of the key to a number."""
    key: tuple[str, ...]
    """The fields that are hashed."""
    count: int | None
    """The file groups of a partition; null where buckets are halved as they grow."""


class ExplainedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live file of a file group."""

    path: str
    """Its path on storage."""
    kind: FileKind
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
    answer: FileAnswer
    """Why it is read, or not."""


class LiveRow(RowOrigin, frozen=True, kw_only=True):
    """The row that a key has now."""

    file: str | None
    """The file that it is in; null for a row that a log has put there."""
    position: int | None
    """Its position in the file; null for a row that a log has put there."""


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the write."""

    row: int
    """The number of the row in the write."""
    key: Annotated[dict[str, Any], msgspec.Meta(examples=[{"id": 1}])]
    """The values of the key fields."""
    hash: str | None
    """The XXH64 of the canonical bucket key, hexadecimal; null under function `mod`."""
    live: LiveRow | None
    """The row that the key has now; null for none."""
    tombstone: KeyTombstone | None
    """The delete that keeps rows of the key with a lesser ordering value away; null for none."""
    effect: WriteEffect | None
    """What the write would do to the key; null where that is decided by a compaction."""
    partition_path: str | None
    """The partition in which the row would be stored; null where that is decided later, or no row is stored."""
    bucket: int | None
    """The bucket in which the row would be stored; null where that is decided later, or no row is stored."""


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
    storing: Storing
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


class WriteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a write would touch if it ran now."""

    version: int
    """The version that the explanation is of."""
    operation: Operation
    """What the write does."""
    index: IndexType | None
    """How keys are found; null without a key."""
    bucket: BucketRule
    """How keys find their file groups."""
    group_count: int
    """How many file groups the write touches; the first of them are listed."""
    file_groups: tuple[ExplainedGroup, ...]
    """The file groups."""
