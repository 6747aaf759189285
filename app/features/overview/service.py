"""Overviews of a table: its files, its partitions and its sums, from the catalogue alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from app.core.catalog.values import Dataset
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.version_definition import definition_at
from app.features.maintenance.service.analysis import AnalysisResults, ColumnDistinct
from app.features.overview.repository import OverviewStore
from app.features.overview.values import FileQuery, PartitionRecord, TableTotals
from app.features.versions.service.versions import VersionOf
from app.kernel.commit.read_plan import files_to_read
from app.kernel.commit.small_files import small_below
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.index.column_summary import ColumnSummary, summarize_columns
from app.kernel.format.rows.projection import projection
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import PageTokens, unknown_token
from app.kernel.sql.conditions.parse import parse_filter

_POSITION: Final = re.compile(r"(?P<version>\d{1,18})-(?P<skip>\d{1,18})", re.ASCII)


class ListingRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Which version to list, as `VersionOf.find` takes it, and which page."""

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None
    page_size: int
    page_token: str | None = None


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """A page of items at `version`; all pages of one list are of the same version."""

    items: list[Any]
    version: int
    next_token: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Overview:
    """Overviews of tables."""

    index: OverviewStore
    timeline: VersionReader
    versions: VersionOf
    analyses: AnalysisResults

    def files(self, dataset: Dataset, query: FileQuery, at: ListingRequest) -> Listing:
        """DataFile items by path. Raises InvalidRequest, NotFound, VersionExpired."""

        def read(version: int, skip: int, limit: int) -> list[DataFile]:
            return self.index.files(dataset.tenant_id, dataset.id, version, query, skip=skip, limit=limit)

        return self._page(dataset, at, query, read)

    def partitions(self, dataset: Dataset, at: ListingRequest) -> Listing:
        """PartitionRecord items by path. Raises InvalidRequest, NotFound, VersionExpired."""

        def read(version: int, skip: int, limit: int) -> list[PartitionRecord]:
            return self.index.partitions(dataset.tenant_id, dataset.id, version, skip=skip, limit=limit)

        return self._page(dataset, at, None, read)

    def totals(self, dataset: Dataset) -> TableTotals:
        """The sums of the table at the head."""
        return self.index.totals(
            dataset.tenant_id,
            dataset.id,
            dataset.version,
            small_below=small_below(dataset.definition),
        )

    def columns(self, dataset: Dataset, names: Sequence[str] | None) -> list[ColumnSummary]:
        """Statistics of these columns from those of each base file, and from the last analysis; empty for None.

        Raises InvalidRequest.
        """
        if names is None:
            return []
        fields = projection(dataset.definition.schema, names).fields
        schemas = self.index.schemas(dataset.tenant_id, dataset.id)
        statistics = self.index.base_statistics(dataset.tenant_id, dataset.id, dataset.version)
        summaries = summarize_columns(fields, schemas, statistics)
        analyses = self.analyses.columns(dataset)
        return [
            _with_distinct(summary, analyses.get(field.id))
            for field, summary in zip(fields, summaries, strict=True)
        ]

    def paths_to_read(
        self, dataset: Dataset, version: int, files: Sequence[DataFile], where: str
    ) -> Collection[str]:
        """The paths of the files that a read of the version with a filter opens, those of `files` at least as far as it
        opens them. Raises InvalidFilter, VersionExpired, NotFound.
        """
        definition = definition_at(self.timeline, dataset, version)
        selection = parse_filter(where, definition.schema)
        groups = sorted({file.file_group for file in files})
        live = self.timeline.live_files(dataset.tenant_id, dataset.id, version, groups)
        return files_to_read(definition, live, selection)

    def schema_at(self, dataset: Dataset, version: int) -> Schema:
        """The schema that names the columns of a version."""
        return self.timeline.schema_at(dataset.tenant_id, dataset.id, version)

    def _page(
        self,
        dataset: Dataset,
        at: ListingRequest,
        query: FileQuery | None,
        read: Callable[[int, int, int], list[Any]],
    ) -> Listing:
        """A page. The items of a version never change, so its token contains the number of items before it."""
        tokens = PageTokens("files" if query else "partitions", dataset.id, query)
        position = None if at.page_token is None else _position(tokens.position(at.page_token))
        requested_version = at.version
        if position is not None and at.version is None and at.as_of is None and at.tag is None:
            requested_version = position.version
        version = self.versions.find(dataset, version=requested_version, as_of=at.as_of, tag=at.tag)
        if position is not None and position.version != version:
            raise _other_version()
        skip = 0 if position is None else position.skip
        items = read(version, skip, at.page_size + 1)
        more = len(items) > at.page_size
        return Listing(
            items=items[: at.page_size],
            version=version,
            next_token=tokens.encode(f"{version}-{skip + at.page_size}") if more else None,
        )


def _with_distinct(summary: ColumnSummary, analysis: ColumnDistinct | None) -> ColumnSummary:
    if analysis is None:
        return summary
    return replace(summary, distinct_count=analysis.distinct, analyzed_version=analysis.version)


class _Position(NamedTuple):
    version: int
    skip: int


def _position(text: str) -> _Position:
    match = _POSITION.fullmatch(text)
    if match is None:
        raise unknown_token()
    return _Position(int(match["version"]), int(match["skip"]))


def _other_version() -> InvalidRequest:
    detail = "expected next_page_token of the page before, with the same version"
    return InvalidRequest(
        "page_token belongs to another version", [FieldError(pointer="/page_token", detail=detail)]
    )
