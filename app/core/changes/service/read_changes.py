"""Reading the feed: the one way to a page of changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final

import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import FeedBounds, StartingPosition, resolve_position
from app.core.changes.repository import ChangelogStore
from app.core.changes.service.page_budget import PageBudget
from app.core.changes.values import ChangePage, DeliveryFormat
from app.core.timeline.errors import OffsetExpired
from app.infra.files.errors import CorruptFile
from app.kernel.changelog.change_positions import (
    changes_since,
    count_since,
    end_of,
    offset_at,
    op_is,
    opens_pair,
)
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.changelog.changelog_run import ChangelogRun, runs_of
from app.kernel.changelog.changelog_scan import ChangelogReader, ChangelogScan
from app.kernel.changelog.delivery_forms import in_form
from app.kernel.format.commit_metadata import CommitMetadata
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.evolution import with_later_types
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import ChangelogSegment
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.row_sizes import rows_within
from app.kernel.format.schema.schema import Schema

# The most changes that a page scans. A page whose filter selects few of them ends there, with a later position.
SCANNED_CHANGES_MAX: Final = 256 * 1024
# The size of a page in memory, with the names of members as JSON repeats them. Texts of JSON are mostly shorter.
PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
_STEP_CHANGES_MAX: Final = 128 * 1024
# Steps grow until one has this number of files or segments.
_STEP_FILES: Final = 64
_STEP_SEGMENTS: Final = 256
# The most segments that one query of the catalogue returns. A page of small segments needs several queries.
_SEGMENTS_MAX: Final = 1_024
# The most files that a page opens. A page of smaller files ends there.
PAGE_FILES_MAX: Final = 512
# The most metadata of commits on a page, in bytes of JSON. A page of commits with more ends there.
METADATA_PAGE_BYTES_MAX: Final = 1024 * 1024
# The number of scanned changes that a file counts as if its partition is not selected.
_SKIPPED_FILE: Final = 64


class FeedQuery(DeliveryFormat, frozen=True, kw_only=True):
    """What a reader requests of a feed, the same for every page.

    `limit`: the most changes on a page. `until`: the position to stop before; None for the head. `commits`: whether
    pages list the commits of their changes that have metadata.
    """

    limit: int
    until: int | None = None
    commits: bool = False

    def __post_init__(self) -> None:
        if self.limit < 1 or (self.until is not None and self.until < 0):
            raise ValueError(f"limit {self.limit} or until {self.until} is out of range")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadChanges:
    """Pages of a dataset's feed. `bytes_max`: the most bytes of changes on a page, unless it has one or one pair."""

    catalog: DatasetLookup
    index: ChangelogStore
    reader: ChangelogReader
    bytes_max: int = PAGE_BYTES_MAX

    def page(self, dataset: Dataset, since: int | StartingPosition, query: FeedQuery) -> ChangePage:
        """The changes from position `since` on, in the requested form.

        A page never ends between a -C and its +C: if necessary it is one change longer than `limit`. An `until` between
        the two ends the page before both. A `since` between the two starts with the +C alone. In forms where the two
        are one event, that event has the offset of the +C, so it is returned with both rows.

        A page also ends before `bytes_max` bytes, before it lists `METADATA_PAGE_BYTES_MAX` bytes of metadata, after
        `PAGE_FILES_MAX` files, and after `SCANNED_CHANGES_MAX` scanned changes, however few of them are selected. It
        may then be empty although changes follow.

        Raises InvalidRequest, InvalidFilter, OffsetAhead, OffsetExpired, SchemaMismatch (a value that the types of the
        requested schema cannot represent), CorruptFile, NotFound, MaskedColumn, GrantNotApplicable, RestrictedGrant.
        """
        return self._page_within(self.index.bounds(dataset.tenant_id, dataset.id), dataset, since, query)

    def page_at_known_head(
        self, dataset: Dataset, since: int | StartingPosition, query: FeedQuery
    ) -> ChangePage:
        """`page` of the feed as it was when `dataset` was read: saves the query for the bounds of the feed."""
        bounds = FeedBounds(earliest=dataset.earliest_offset, next_offset=dataset.next_offset)
        return self._page_within(bounds, dataset, since, query)

    def _page_within(
        self, bounds: FeedBounds, dataset: Dataset, since: int | StartingPosition, query: FeedQuery
    ) -> ChangePage:
        start = resolve_position(since, bounds)
        try:
            return self._page(dataset, bounds, start, query)
        except (CorruptFile, OffsetExpired):
            # The feed may have been cut while the page was read, which removes files.
            if self.index.bounds(dataset.tenant_id, dataset.id).earliest == bounds.earliest:
                raise
        return self.page(dataset, since, query)

    def _page(self, dataset: Dataset, bounds: FeedBounds, start: int, query: FeedQuery) -> ChangePage:
        end = bounds.next_offset if query.until is None else min(query.until, bounds.next_offset)
        # One change more than the limit shows whether the last one is a -C whose +C follows.
        segments = self._segments(dataset, start, min(start + query.limit + 1, end))
        selection = self.selection(dataset, query, segments)
        page = self._walk(dataset, selection, query, segments, range(start, end), bounds.earliest)
        page, commits = self._with_commits(dataset, page, start) if query.commits else (page, ())
        return ChangePage(
            events=in_form(page.changes, query.form, dataset.definition.name),
            schema_id=selection.schema.id,
            form=query.form,
            next_since=page.position,
            pending=bounds.next_offset - page.position,
            earliest=bounds.earliest,
            complete=query.until is not None and page.position + page.splits_end >= query.until,
            vocabulary=query.vocabulary or dataset.definition.changelog.vocabulary,
            watermark=self._watermark(dataset, page.position),
            commits=commits,
        )

    def _with_commits(
        self, dataset: Dataset, page: _PageChanges, start: int
    ) -> tuple[_PageChanges, tuple[CommitMetadata, ...]]:
        """The page from `start` on, and the commits of its changes that have metadata. It is shorter if there is too
        much of it.
        """
        if page.position == start:
            return page, ()
        listed = self.index.commits_of_changes(
            dataset.tenant_id, dataset.id, start, page.position, bytes_max=METADATA_PAGE_BYTES_MAX
        )
        if listed.end is None:
            return page, listed.commits
        count = page.changes.num_rows - count_since(page.changes, listed.end)
        return _PageChanges(changes=page.changes.slice(0, count), position=listed.end), listed.commits

    def _watermark(self, dataset: Dataset, position: int) -> datetime | None:
        if dataset.watermark is None:
            return None
        return self.index.watermark(dataset.tenant_id, dataset.id, position)

    def _segments(self, dataset: Dataset, since: int, until: int) -> list[ChangelogSegment]:
        if since >= until:
            return []
        return self.index.segments(dataset.tenant_id, dataset.id, since, until, limit=_SEGMENTS_MAX)

    def selection(
        self, dataset: Dataset, query: DeliveryFormat, segments: Sequence[ChangelogSegment] = ()
    ) -> ChangeSelection:
        """The selection for these files, under the requested schema or one that is not earlier than theirs.

        Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant.
        """
        if _outdated(dataset.definition, segments):
            # The schema has changed since the caller read the dataset.
            dataset = self.catalog.get(dataset.tenant_id, dataset.id)
        schema, stored_as = dataset.definition.schema, None
        if query.schema_id is not None and query.schema_id != schema.id:
            schema = self._earlier_schema(dataset, query.schema_id)
            stored_as = with_later_types(schema, self._later_schemas(dataset, schema))
        return ChangeSelection.of(
            dataset.definition,
            schema,
            stored_as=stored_as,
            columns=query.columns,
            where=query.where,
            partitions=query.partitions,
            access=query.access,
        )

    def _earlier_schema(self, dataset: Dataset, schema_id: int) -> Schema:
        try:
            return self.catalog.schema(dataset.tenant_id, dataset.id, schema_id).schema
        except NotFound as error:
            detail = f"expected `latest` or 1–{dataset.definition.schema.id}, the id of one of the dataset's schemas"
            raise InvalidRequest(error.detail, [FieldError(pointer="/schema", detail=detail)]) from None

    def _later_schemas(self, dataset: Dataset, schema: Schema) -> Sequence[Schema]:
        latest = dataset.definition.schema
        if {field.id for field in schema.fields} <= {field.id for field in latest.fields}:
            # Types only get wider.
            return [latest]
        return self.catalog.later_schemas(dataset.tenant_id, dataset.id, schema.id)

    def _walk(
        self,
        dataset: Dataset,
        selection: ChangeSelection,
        query: FeedQuery,
        segments: Sequence[ChangelogSegment],
        among: range,
        earliest: int,
    ) -> _PageChanges:
        """The changes of a page. `among`: the offsets to scan; `segments`: the files of the first step."""
        scan = ChangelogScan(reader=self.reader, selection=selection)
        budget = PageBudget(
            changes=query.limit,
            size_bytes=self.bytes_max,
            files=PAGE_FILES_MAX,
            cost=SCANNED_CHANGES_MAX if selection.selects else None,
        )
        parts = [selection.changes_schema().empty_table()]
        # At a position between a -C and its +C, the -C may be selected by the filter, or be part of the joined event.
        first = max(earliest, among.start - selection.selects)
        lower = max(earliest, among.start - (selection.selects or query.form.joins_pairs))
        position, run = among.start, None
        for piece in self._pieces(dataset, selection, segments, among, query.limit + 1):
            run = piece.run
            if piece.ruled_out:
                position = first = piece.end
                budget.take_cost(_SKIPPED_FILE * len(run.segments))
            else:
                upper = among.stop if selection.selects else piece.end
                while position < piece.end and not budget.spent:
                    part = scan.find(
                        run,
                        max(first, run.first_offset),
                        piece.end,
                        lower=lower,
                        upper=upper,
                        bytes_max=budget.size_bytes,
                    )
                    parts.append(changes_since(part.changes, among.start, whole=query.form.joins_pairs))
                    position = first = max(part.end, end_of(part.changes))
                    budget.take_changes(parts[-1], among.start)
                    budget.take_cost(part.cost)
                budget.files -= run.files
            if budget.spent:
                break
        changes = pa.concat_tables(parts)
        fits = min(budget.fitting(changes), rows_within(changes, self.bytes_max, with_names=True))
        count = _page_end(changes, fits)
        if count < changes.num_rows:
            return _PageChanges(changes=changes.slice(0, count), position=offset_at(changes, count))
        if run is None:
            return _PageChanges(changes=changes, position=position)
        return _with_whole_pairs(scan, run, changes, position, among.stop)

    def _pieces(
        self,
        dataset: Dataset,
        selection: ChangeSelection,
        segments: Sequence[ChangelogSegment],
        among: range,
        step: int,
    ) -> Iterator[_Piece]:
        """The runs that hold the offsets.

        They end before files with a schema that is later than the one of `selection`.
        """
        position = among.start
        while segments and not _outdated(selection.definition, segments):
            stop = min(position + step, among.stop)
            for ruled_out, alike in groupby(segments, lambda segment: selection.rules_out(segment.file)):
                for run in runs_of(alike):
                    position = min(among.stop if ruled_out else stop, run.end_offset)
                    yield _Piece(run=run, end=position, ruled_out=ruled_out)
            files = len({segment.file.path for segment in segments})
            if files <= _STEP_FILES and len(segments) <= _STEP_SEGMENTS:
                step = min(4 * step, _STEP_CHANGES_MAX)
            segments = self._segments(dataset, position, min(position + step, among.stop))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """A run, with the offset to scan up to. `ruled_out`: none of its changes is selected, so it is not scanned."""

    run: ChangelogRun
    end: int
    ruled_out: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class _PageChanges:
    """The changes of a page, and the position after the last scanned change.

    `splits_end`: whether the position is one before the end of the offsets to scan, because that end splits a pair.
    """

    changes: pa.Table
    position: int
    splits_end: bool = False


def _with_whole_pairs(
    scan: ChangelogScan, run: ChangelogRun, changes: pa.Table, position: int, stop: int
) -> _PageChanges:
    """The changes before a position in the run; those before the -C if the position splits a pair.

    `stop`: the end of the offsets to scan.
    """
    last = changes.num_rows - 1
    # A filter may have left the -C out.
    may_split = scan.selection.selects or op_is(changes, last, Op.CORRECT_FROM)
    if not may_split or not scan.splits_pair(run, position):
        return _PageChanges(changes=changes, position=position)
    pair_start = position - 1
    has_start = end_of(changes) > pair_start
    return _PageChanges(
        changes=changes.slice(0, changes.num_rows - has_start),
        position=pair_start,
        splits_end=position == stop,
    )


def _outdated(definition: DatasetDefinition, segments: Sequence[ChangelogSegment]) -> bool:
    return any(segment.file.schema_id > definition.schema.id for segment in segments)


def _page_end(changes: pa.Table, count: int) -> int:
    """The number of changes of a page with room for `count`: one more where a -C would lose its +C."""
    return count + opens_pair(changes, count - 1)
