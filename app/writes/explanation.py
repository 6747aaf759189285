"""What an explanation of a write tells."""

from __future__ import annotations

from typing import Any

import msgspec

from app.commit.storing import Storing
from app.commit.write_effect import WriteEffect
from app.format.dataset import BucketFunction, BucketMode, IndexType
from app.format.file_group import FileKind
from app.format.index.index_answer import FileAnswer
from app.format.operation import Operation


class BucketRule(msgspec.Struct, frozen=True, kw_only=True):
    """How a key finds its file group: the `function` of the `key` fields, modulo `count`."""

    mode: BucketMode
    function: BucketFunction
    key: tuple[str, ...]
    count: int


class ExplainedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A live file of a group. `read`: whether the write reads it, for the reason that `answer` gives."""

    path: str
    kind: FileKind
    partition_path: str
    bucket: int
    size_bytes: int
    live_rows: int
    read: bool
    answer: FileAnswer


class LiveRow(msgspec.Struct, frozen=True, kw_only=True):
    """The row that a key has now: the commit and the change that gave it its values (null where not known), and the
    file and position it is at (null for a row that a log has put there).
    """

    version: int | None
    offset: int | None
    file: str | None
    position: int | None


class ExplainedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the write, by its number. `hash`: XXH64 of the canonical bucket key, hexadecimal; null under `mod`.

    `partition_path` and `bucket` are where the row would be stored; null where that is decided later, or where no row
    is stored. `effect` is null where nobody looks before compaction.
    """

    row: int
    key: dict[str, Any]
    hash: str | None
    live: LiveRow | None
    effect: WriteEffect | None
    partition_path: str | None
    bucket: int | None


class ExplainedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """A file group that the write touches. `number`: what the bucket rule gives for its keys.

    `rewritten_bytes`: the size of the files that are written anew; `marked_files`: those in which deletion vectors take
    out the rows of the keys.
    """

    file_group: str
    partition_path: str
    number: int
    rows: int
    storing: Storing
    reason: str
    files: tuple[ExplainedFile, ...]
    rewritten_bytes: int
    marked_files: tuple[str, ...]
    keys: tuple[ExplainedKey, ...]


class WriteExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What a write would touch if it ran at `version`. `index` is null without a key.

    `group_count`: the file groups in all, of which the first are listed.
    """

    version: int
    operation: Operation
    index: IndexType | None
    bucket: BucketRule
    group_count: int
    file_groups: tuple[ExplainedGroup, ...]
