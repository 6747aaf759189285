"""Looking at a table from outside: its files, its partitions and its sums, without reading any of them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from app.catalog.values import Dataset
from app.commit.compaction_plan import small_below
from app.format.errors import FieldError, InvalidRequest
from app.format.file_group import DataFile
from app.format.index.column_summary import ColumnSummary, summarize_columns
from app.format.rows.projection import projection
from app.format.schema.schema import Schema
from app.overview.values import FileQuery, OverviewIndex, PartitionRecord, TableTotals
from app.timeline.ports import Timeline
from app.versions.service.versions import VersionOf

_T = TypeVar("_T")


class ListingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which version is asked about, as `VersionOf.find` takes it, and where its listing goes on."""

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    page_size: int
    page_token: str | None = None


class _ListingPosition(msgspec.Struct, frozen=True, array_like=True):
    version: int
    after: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A page of what is there at `version`; all pages of a walk are of one version."""

    items: list[Any]
    version: int
    next_token: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """Overviews of tables."""

    index: OverviewIndex
    timeline: Timeline
    versions: VersionOf

    def files(self, dataset: Dataset, query: FileQuery, at: ListingRequest) -> Listing:
        """DataFile items by path. Raises InvalidRequest, NotFound, VersionExpired."""

        def read(version: int, after: str | None, limit: int) -> list[DataFile]:
            return self.index.files(dataset.tenant_id, dataset.id, version, query, after=after, limit=limit)

        return self._page(dataset, at, read, lambda file: file.path)

    def partitions(self, dataset: Dataset, at: ListingRequest) -> Listing:
        """PartitionRecord items by path. Raises InvalidRequest, NotFound, VersionExpired."""

        def read(version: int, after: str | None, limit: int) -> list[PartitionRecord]:
            return self.index.partitions(dataset.tenant_id, dataset.id, version, after=after, limit=limit)

        return self._page(dataset, at, read, lambda partition: partition.path)

    def totals(self, dataset: Dataset) -> TableTotals:
        """The sums of the table as it is now."""
        return self.index.totals(
            dataset.tenant_id,
            dataset.id,
            dataset.version,
            small_below=small_below(dataset.definition),
        )

    def columns(self, dataset: Dataset, names: Sequence[str] | None) -> list[ColumnSummary]:
        """What base files say of these columns, of none for None. It looks at each file. Raises InvalidRequest."""
        if names is None:
            return []
        fields = projection(dataset.definition.schema, names).fields
        schemas = self.index.schemas(dataset.tenant_id, dataset.id)
        found = self.index.base_statistics(dataset.tenant_id, dataset.id, dataset.version)
        return summarize_columns(fields, schemas, found)

    def schema_at(self, dataset: Dataset, version: int) -> Schema:
        """The schema that names the columns of a version."""
        return self.timeline.schema_at(dataset.tenant_id, dataset.id, version)

    def _page(
        self,
        dataset: Dataset,
        at: ListingRequest,
        read: Callable[[int, str | None, int], list[_T]],
        place: Callable[[_T], str],
    ) -> Listing:
        position = None if at.page_token is None else _decode(at.page_token)
        requested_version = at.version
        if position is not None and at.version is None and at.as_of is None and at.tag is None:
            requested_version = position.version
        version = self.versions.find(dataset, version=requested_version, as_of=at.as_of, tag=at.tag)
        if position is not None and position.version != version:
            raise _bad_token()
        items = read(version, None if position is None else position.after, at.page_size + 1)
        more = len(items) > at.page_size
        kept = items[: at.page_size]
        return Listing(
            items=kept,
            version=version,
            next_token=_encode(_ListingPosition(version, place(kept[-1]))) if more else None,
        )


def _encode(position: _ListingPosition) -> str:
    return base64.urlsafe_b64encode(msgspec.msgpack.encode(position)).decode().rstrip("=")


def _decode(token: str) -> _ListingPosition:
    try:
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        position = msgspec.msgpack.decode(raw, type=_ListingPosition)
    except (ValueError, msgspec.MsgspecError) as error:
        raise _bad_token() from error
    if "\0" in position.after:
        raise _bad_token()
    return position


def _bad_token() -> InvalidRequest:
    detail = "expected next_page_token of the page before, with the same version"
    return InvalidRequest("the page token is not valid", [FieldError(pointer="/page_token", detail=detail)])
