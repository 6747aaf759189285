"""Values that the use cases and their ports exchange."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, NamedTuple

import msgspec

from app.infra.files.checksums import is_sha256
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.schema.schema import Schema


class Dataset(msgspec.Struct, frozen=True, kw_only=True):
    """A registered dataset and where its head stands.

    `next_offset` is the number of changes so far; those from `earliest_offset` on are kept. So are the files of the
    versions from `earliest_version` on, and of those that have a name.
    `watermark`: that of the head; None before the first event time.
    `is_view`: it is a view's, so that nothing but its refreshes writes to it.
    `description`, `labels`, `expected_every_seconds`: the notes of its users.
    """

    id: str
    tenant_id: str
    definition: DatasetDefinition
    version: int
    next_offset: int
    created_at: datetime
    committed_at: datetime | None
    earliest_offset: int = 0
    earliest_version: int = 0
    watermark: datetime | None = None
    is_view: bool = False
    description: str | None = None
    labels: dict[str, str] = {}
    expected_every_seconds: int | None = None


class DatasetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset in a list of many, without its definition. Members: as of `Dataset`."""

    id: str
    name: str
    version: int
    next_offset: int
    committed_at: datetime | None
    is_view: bool
    labels: dict[str, str]


class DatasetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects datasets of a list: those that satisfy all of its members; None for any.

    `patterns`: at least one of them matches the name. `name`: a pattern that matches it. `labels`: all that it has.
    `references`: one of them is its id or its name.
    """

    patterns: tuple[str, ...] | None = None
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    ids: frozenset[str] | None = None
    references: frozenset[str] | None = None


class AwaitedHead(NamedTuple):
    """A dataset of which a change at or after `position` is awaited: its head is after the position then."""

    dataset_id: str
    position: int


class DatasetName(NamedTuple):
    """The name of a dataset, and when it was deleted; None if it was not."""

    name: str
    deleted_at: datetime | None


class SchemaVersion(msgspec.Struct, frozen=True, kw_only=True):
    """One of the schemas that a dataset had."""

    schema: Schema
    created_at: datetime


class Upload(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that a client has uploaded, to be named by a write.

    `checksum`: XXH3-128, or SHA-256 of bytes that the client sends to a link, whenever it does.
    """

    id: str
    dataset_id: str
    path: str
    size_bytes: int
    checksum: str
    created_at: datetime

    @property
    def linked(self) -> bool:
        """Whether its bytes are sent to a link."""
        return is_sha256(self.checksum)


class ReadingExample(msgspec.Struct, frozen=True, kw_only=True):
    """How an engine reads a dataset as a table: a text to copy."""

    engine: Annotated[str, msgspec.Meta(examples=["DuckDB"])]
    """The engine."""
    language: Annotated[str, msgspec.Meta(examples=["sql"])]
    """What the text is: `sql`, `python` or `shell`."""
    code: Annotated[str, msgspec.Meta(examples=['SELECT * FROM headwater.headwater."orders" LIMIT 10;'])]
    """The text, with `YOUR_API_KEY` in the place of the key."""
