"""Pages of rows of the table, at any version."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from itertools import chain
from typing import Annotated, Final

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionRows
from app.core.timeline.service.live_groups import LiveGroups
from app.core.timeline.service.version_definition import definition_at
from app.core.timeline.service.version_pins import expired_if_missing
from app.features.reads.service.later_corrections import LaterCorrections, may_be_corrected
from app.features.reads.service.sealed_places import NotSealed, PlaceKey, SealedPlaces
from app.features.reads.values import RowPage
from app.features.versions.service.versions import VersionOf
from app.infra.files.slices.ordered_walk import OrderedWalk, RowRanks
from app.infra.files.slices.table_walk import RowPlace, TableWalk
from app.kernel.codecs.meta_on_read import (
    META_SOURCES,
    versions_of,
    with_corrections,
    with_meta,
)
from app.kernel.commit.read_plan import GroupScan, in_globs, plan_read
from app.kernel.format.dataset import BucketMode, DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.file_group import FileKind
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import key_fields, member_path
from app.kernel.format.rows.meta_columns import META_FIELDS, OFFSET_COLUMN, PARTITION_FIELD
from app.kernel.format.rows.projection import check_partitions, projection
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import PAGE_ROWS_MAX, PageTokens, unknown_token
from app.kernel.sql.conditions.bound_access import BoundAccess, bind_access
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from app.kernel.sql.conditions.tree import Filter
from app.kernel.sql.read_order import ReadOrder, parse_order

PINNED_SECONDS: Final = 600.0
"""For how long a page with a following one keeps its version, in seconds."""
ROW_PAGES: Final = "row pages"
"""The reader of the leases of such versions."""
_INT64_MAX: Final = 2**63 - 1


class QueryType(str, Enum):
    """What a read returns: the table, or only the rows of base files, without merging the logs of merge_on_read."""

    SNAPSHOT = "snapshot"
    READ_OPTIMIZED = "read_optimized"


class RowQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader requests of a table, as of `version`, `as_of` or the version with the name `tag`.

    Without any of the three, the latest version is read.
    """

    query_type: QueryType = QueryType.SNAPSHOT
    """`read_optimized` reads base files only: faster where merge_on_read keeps logs, but without what is in them until
    a compaction.
    """
    version: Annotated[int, msgspec.Meta(ge=0, le=_INT64_MAX)] | None = None
    """The version to read; the latest by default."""
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """An RFC 3339 time: reads the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint: reads the version that has it."""
    columns: tuple[str, ...] | None = None
    """The columns to read, comma-separated or repeated; all by default."""
    where: str | None = None
    """A filter: the rows for which it is true."""
    partitions: tuple[str, ...] | None = None
    """Globs of partition paths, repeated: the rows of partitions that match one."""
    meta: bool = False
    """Adds the five meta columns behind the others."""
    corrected_since: bool = False
    """Adds to each row of an earlier version what has retracted it since: the columns `_hw_corrected_by` (an offset)
    and `_hw_corrected_version`, null where nothing has.
    """
    order_by: tuple[str, ...] | None = None
    """The columns to order rows by, comma-separated or repeated, each alone or with `:asc` or `:desc`: `at:desc`. By
    default rows are in no particular order. Nulls come last in both directions.
    """
    limit: Annotated[int, msgspec.Meta(ge=1, le=PAGE_ROWS_MAX)] = 1_000
    """Rows on a page, at most."""
    page_token: str | None = None
    """`next_page_token` of the page before; absent for the first page."""


class _RowPosition(msgspec.Struct, frozen=True, kw_only=True):
    """A position among the rows of a version: a live row of a file group. Groups are ordered by name.

    `seal`: in tokens of a reader that sees a part of the dataset, the group and the row, which show it nothing of
    hidden rows. Of rows in an order, it is the position of the last row of the page before.
    """

    version: Annotated[int, msgspec.Meta(ge=0)]
    file_group: str = msgspec.field(name="group")
    row: Annotated[int, msgspec.Meta(ge=0)]
    seal: str | None = None


class _SealedPlace(msgspec.Struct, frozen=True, array_like=True):
    """What the seal of a position has."""

    file_group: str
    row: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadTable:
    """Pages of a dataset's rows."""

    catalog: DatasetLookup
    timeline: VersionRows
    versions: VersionOf
    walk: TableWalk
    later: LaterCorrections
    places: SealedPlaces

    def page(self, dataset: Dataset, query: RowQuery, access: RowAccess = EVERYTHING) -> RowPage:
        """At most `limit` of the rows that the access shows. The first page determines the version, which is part of
        its token. A page with a following one keeps the version for `PINNED_SECONDS`.

        Without `order_by` rows have no particular order, but the same each time for a version, and a page may have
        fewer rows than `limit`, as `TableWalk.page` describes.

        Raises InvalidRequest, InvalidFilter, CorruptFile, VersionExpired, NotFound (no version has the name),
        MaskedColumn, GrantNotApplicable, OrderTooLarge (with `order_by`), and with `corrected_since` OffsetExpired if
        the feed no longer goes back to the version.
        """
        position = self._start(dataset, query)
        try:
            with expired_if_missing(
                self.versions.leases, dataset.tenant_id, [(dataset.id, position.version)]
            ):
                return self._page(dataset, query, position, access)
        except VersionExpired:
            if any(
                choice is not None for choice in (query.version, query.as_of, query.tag, query.page_token)
            ):
                raise
        # The version was the latest when the page began, and has expired since.
        return self.page(self.catalog.get(dataset.tenant_id, dataset.id), query, access)

    def _page(self, dataset: Dataset, query: RowQuery, position: _RowPosition, access: RowAccess) -> RowPage:
        definition = definition_at(self.timeline, dataset, position.version)
        bound = bind_access(access, dataset.definition.schema, definition.schema)
        corrects = may_be_corrected(dataset, position.version)
        selection = _row_selection(definition, query, bound, with_offsets=corrects)
        groups = LiveGroups(
            timeline=self.timeline,
            tenant_id=dataset.tenant_id,
            dataset_id=dataset.id,
            version=position.version,
            kinds=tuple(FileKind),
        )
        seal, position = self._opened(dataset, position, access)
        rank = None
        if seal is not None and definition.bucket.mode is not BucketMode.KEY_DYNAMIC:
            # The order of partitions would show the hidden values that their paths have.
            rank = seal.rank if bound.hides_any(partition_sources(definition)) else None
        groups = groups.reached(definition, where=selection.where, globs=selection.partitions, rank=rank)
        kinds = (FileKind.BASE,) if query.query_type is QueryType.READ_OPTIMIZED else groups.kinds
        # The rows that follow in an order may be in any group.
        from_group = "" if selection.order else position.file_group
        scans = chain.from_iterable(
            plan_read(
                definition,
                (file for file in files if file.kind in kinds),
                where=selection.where,
                partitions=selection.partitions,
            )
            for files in groups.batches(from_group)
        )
        place = RowPlace(file_group=position.file_group, row=position.row)
        if selection.order:
            # The places of rows are in the order of their keys, which a mask may hide.
            ranks = seal.row_ranks if seal is not None and access.masked else None
            rows, end = self._in_order(selection, scans, place, query, ranks)
        else:
            page = self.walk.page(selection, scans, place, query.limit)
            rows, end = page.rows, page.following
        following = None if end is None else _at(position, end)
        if following is not None:
            # One lease for all readers of the version, which each page extends.
            leases = self.versions.leases
            leases.acquire(dataset.tenant_id, dataset.id, position.version, ROW_PAGES, PINNED_SECONDS)
        return RowPage(
            rows=self._shown(dataset, selection, position.version, rows),
            version=position.version,
            schema_id=selection.result_schema.id,
            next_page_token=None
            if following is None
            else _encode(dataset, query, _sealed(dataset, following, seal)),
            corrected=self.later.of_rows(dataset, position.version, rows.column(OFFSET_COLUMN))
            if corrects
            else None,
        )

    def _in_order(
        self,
        selection: _RowSelection,
        scans: Iterable[GroupScan],
        last: RowPlace,
        query: RowQuery,
        ranks: RowRanks | None,
    ) -> tuple[pa.Table, RowPlace | None]:
        """Rows behind the last one of the page before, and the place of the last of them if others follow."""
        ordered = OrderedWalk(groups=self.walk.groups, bytes_max=self.walk.bytes_max)
        after = None if query.page_token is None else last
        page = ordered.page(selection, scans, selection.order, after, query.limit, ranks)
        return page.rows, page.last

    def _opened(
        self, dataset: Dataset, position: _RowPosition, access: RowAccess
    ) -> tuple[PlaceKey | None, _RowPosition]:
        """The position of a token, and what seals the next one; None for a reader that may see the names of groups.

        Raises InvalidRequest for a token of a reader with another access, Unavailable.
        """
        if not access.restricted:
            if position.seal is not None:
                raise unknown_token()
            return None, position
        if position.file_group:
            raise unknown_token()
        if position.seal is None:
            return self.places.latest(), position
        try:
            key, content = self.places.open(_scope(dataset, position), position.seal)
        except NotSealed:
            raise unknown_token() from None
        place = msgspec.msgpack.decode(content, type=_SealedPlace)
        return key, _RowPosition(version=position.version, file_group=place.file_group, row=place.row)

    def _start(self, dataset: Dataset, query: RowQuery) -> _RowPosition:
        if query.page_token is not None:
            position = _decode(dataset, query, query.page_token)
            if position.version > dataset.version or query.version not in (None, position.version):
                raise _other_version()
            self.versions.check(dataset, position.version)
            return position
        version = self.versions.find(dataset, version=query.version, as_of=query.as_of, tag=query.tag)
        return _RowPosition(version=version, file_group="", row=0)

    def _shown(self, dataset: Dataset, selection: _RowSelection, version: int, rows: pa.Table) -> pa.Table:
        """The rows with the requested columns, in their order."""
        table = selection.access.shown(rows.select(selection.result_schema.names()))
        if selection.meta:
            versions = versions_of(rows)
            times = self.timeline.commit_times(dataset.tenant_id, dataset.id, versions) if versions else {}
            table = with_meta(table, rows, selection.definition, selection.access.masked, times)
        if selection.corrected_since:
            table = self._with_corrections(dataset, version, table, rows.column(OFFSET_COLUMN).to_pylist())
        return table

    def _with_corrections(
        self, dataset: Dataset, version: int, table: pa.Table, offsets: Sequence[int | None]
    ) -> pa.Table:
        """The rows with the corrections of the changes at these offsets, which gave them their values."""
        row_offsets = [offset for offset in offsets if offset is not None]
        since = self.timeline.next_offset(dataset.tenant_id, dataset.id, version)
        corrections = self.later.corrections.of_rows(dataset, row_offsets, since)
        by = [corrections.get(offset) if offset is not None else None for offset in offsets]
        return with_corrections(
            table,
            pa.array([each and each.by for each in by], pa.int64()),
            pa.array([each and each.version for each in by], pa.int64()),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _RowSelection:
    """The selected rows and columns. `read`: the columns to read. `result_schema`: those to return beside meta columns.

    `partitions`: globs; None for all. `order`: the columns of the order, then the fields of the key; empty for rows in
    no order.
    """

    definition: DatasetDefinition
    result_schema: Schema
    read: pa.Schema
    where: Filter | None
    partitions: tuple[str, ...] | None
    meta: bool
    corrected_since: bool
    access: BoundAccess
    order: tuple[ReadOrder, ...] = ()

    @property
    def selects(self) -> bool:
        """Whether rows that are read may not be selected."""
        return self.where is not None or self.by_row

    @property
    def by_row(self) -> bool:
        """Whether rows must be checked for their partition, because a file may have rows of several."""
        return self.partitions is not None and self.definition.bucket.mode is BucketMode.KEY_DYNAMIC

    def chosen(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        """The numbers of the selected rows."""
        selection = np.ones(rows.num_rows, dtype=np.bool_)
        if self.where is not None:
            selection &= matches(self.where, rows)
        if self.by_row:
            paths = rows.column(PARTITION_FIELD.name).combine_chunks().dictionary_encode()
            path_matches = [in_globs(path, self.partitions or ()) for path in paths.dictionary.to_pylist()]
            selection &= np.array(path_matches, dtype=np.bool_)[paths.indices.to_numpy()]
        return np.flatnonzero(selection)


def _row_selection(
    definition: DatasetDefinition, query: RowQuery, access: BoundAccess, *, with_offsets: bool
) -> _RowSelection:
    """`with_offsets`: whether the offsets are read of the changes that gave the rows their values.

    Raises InvalidRequest, InvalidFilter, MaskedColumn.
    """
    schema = definition.schema
    result_schema = projection(schema, query.columns)
    where = access.selecting(None if query.where is None else parse_filter(query.where, schema))
    check_partitions(definition, query.partitions)
    access.check_partitions(definition, query.partitions)
    order = () if query.order_by is None else _total_order(definition, query.order_by, access)
    columns = {
        *result_schema.names(),
        *(where.columns() if where else ()),
        *(member_path(key.column, schema.names())[0] for key in order),
        *(key_fields(definition) if query.meta else ()),
    }
    fields = list(schema.select([name for name in schema.names() if name in columns]).to_arrow())
    selection = _RowSelection(
        definition=definition,
        result_schema=result_schema,
        read=pa.schema([*fields, *_meta_sources(query, with_offsets)]),
        where=where,
        partitions=query.partitions,
        meta=query.meta,
        corrected_since=query.corrected_since,
        access=access,
        order=order,
    )
    if selection.by_row and not query.meta:
        return replace(selection, read=selection.read.append(PARTITION_FIELD))
    return selection


def _total_order(
    definition: DatasetDefinition, texts: Sequence[str], access: BoundAccess
) -> tuple[ReadOrder, ...]:
    """The order that a reader requests, then that of the key, unless a part of it is hidden from the reader.

    Raises InvalidRequest, MaskedColumn.
    """
    order = parse_order(definition.schema, texts)
    names = [key.column for key in order]
    access.refuse_masked(names, "order_by")
    if access.hides_any(key_fields(definition)):
        return order
    return (*order, *(ReadOrder(column=name) for name in definition.record_key if name not in names))


def _meta_sources(query: RowQuery, with_offsets: bool) -> Sequence[pa.Field]:
    if query.meta:
        return META_SOURCES
    return META_FIELDS if query.corrected_since or with_offsets else ()


def _at(position: _RowPosition, place: RowPlace) -> _RowPosition:
    return _RowPosition(version=position.version, file_group=place.file_group, row=place.row)


def _tokens(dataset: Dataset, query: RowQuery) -> PageTokens:
    """The tokens of the rows that a query selects. It may return other columns of them on each page."""
    order = () if query.order_by is None else (query.order_by,)
    return PageTokens("rows", dataset.id, query.query_type, query.where, query.partitions, *order)


def _sealed(dataset: Dataset, position: _RowPosition, seal: PlaceKey | None) -> _RowPosition:
    """The position for a token. `seal`: None if the reader may see the names of groups."""
    if seal is None:
        return position
    content = msgspec.msgpack.encode(_SealedPlace(position.file_group, position.row))
    text = seal.seal(_scope(dataset, position), content)
    return _RowPosition(version=position.version, file_group="", row=0, seal=text)


def _scope(dataset: Dataset, position: _RowPosition) -> str:
    return f"rows {dataset.id} {position.version}"


def _encode(dataset: Dataset, query: RowQuery, position: _RowPosition) -> str:
    return _tokens(dataset, query).encode(msgspec.json.encode(position).decode())


def _decode(dataset: Dataset, query: RowQuery, token: str) -> _RowPosition:
    try:
        return msgspec.json.decode(_tokens(dataset, query).position(token), type=_RowPosition)
    except msgspec.MsgspecError:
        raise unknown_token() from None


def _other_version() -> InvalidRequest:
    detail = "expected next_page_token of the page before, with the same version"
    return InvalidRequest(
        "page_token belongs to another version", [FieldError(pointer="/page_token", detail=detail)]
    )
