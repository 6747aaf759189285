"""The beginning of a feed that starts with the table: its rows at one version, as appends."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from app.core.catalog.ports import DatasetLookup
from app.core.catalog.values import Dataset
from app.core.changes.positions import (
    SNAPSHOT_READER,
    FeedBounds,
    FeedPosition,
    SnapshotPosition,
    version_ahead,
)
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.core.changes.values import ChangePage, SnapshotPlaces
from app.core.timeline.errors import VersionExpired
from app.core.timeline.ports import VersionRows
from app.core.timeline.repository.read_leases import ReadLeaseStore
from app.core.timeline.service.live_groups import AFTER_ALL, LiveGroups
from app.core.timeline.service.version_pins import expired_if_missing
from app.infra.files.slices.table_walk import RowPlace, TableWalk, WalkedRows
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.changelog.changelog_run import SYSTEM_TIME
from app.kernel.changelog.delivery_forms import in_form
from app.kernel.commit.read_plan import plan_read
from app.kernel.format.dataset import ChangelogProducer, DatasetDefinition
from app.kernel.format.definition.evolution import under_schema
from app.kernel.format.file_group import FileKind
from app.kernel.format.rows.meta_columns import META_FIELDS, OFFSET_COLUMN, VERSION_COLUMN
from app.kernel.sql.conditions.tree import Filter

# How long a version, and the feed after it, are kept for the next page.
_LEASE_SECONDS: Final = 600.0
# How long after the next version such a lease can still be made: a reader cannot keep a version for ever.
_SUPERSEDED_SECONDS_MAX: Final = 24 * 3_600.0
# Beyond this, other commits and cleans overtake every attempt to lease the latest version.
_ATTEMPTS_MAX: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadSnapshots:
    """Pages of a feed that starts with the table, and of one that does not."""

    catalog: DatasetLookup
    timeline: VersionRows
    leases: ReadLeaseStore
    changes: ReadChanges
    walk: TableWalk

    def page(self, dataset: Dataset, since: FeedPosition, query: FeedQuery) -> ChangePage:
        """`page_at_known_head` of the feed as it is now."""
        if not isinstance(since, SnapshotPosition):
            return self.changes.page(dataset, since, query)
        return self.page_at_known_head(dataset, since, query)

    def page_at_known_head(self, dataset: Dataset, since: FeedPosition, query: FeedQuery) -> ChangePage:
        """The page from a position on: rows of a version as `+A`, or changes.

        The rows of a version are those that the feed before its `next_since` results in. They are in no particular
        order, but in the same one each time. Each page leases the version for some minutes, so that it and the feed
        after it stay until the next page, but not for ever: an older version is read for as long as it is there.
        Raises VersionExpired for a version that is no longer kept, OffsetExpired if the feed after it is not, and
        what `ReadChanges.page` does.
        """
        if not isinstance(since, SnapshotPosition):
            return self.changes.page_at_known_head(dataset, since, query)
        for _ in range(_ATTEMPTS_MAX - 1):
            try:
                return self._page(dataset, since, query)
            except VersionExpired:
                if since.version is not None:
                    raise
            # The version was the latest when the request began, and has expired since.
            dataset = self.catalog.get(dataset.tenant_id, dataset.id)
        return self._page(dataset, since, query)

    def _page(self, dataset: Dataset, position: SnapshotPosition, query: FeedQuery) -> ChangePage:
        version = dataset.version if position.version is None else position.version
        if version > dataset.version:
            raise version_ahead(version, dataset.version)
        ids = dataset.tenant_id, dataset.id
        reader = (*ids, version, SNAPSHOT_READER, _LEASE_SECONDS)
        self.leases.acquire(*reader, superseded_seconds_max=_SUPERSEDED_SECONDS_MAX)
        self.leases.acquire_feed(*reader, superseded_seconds_max=_SUPERSEDED_SECONDS_MAX)
        bounds = self.changes.index.bounds(*ids)
        continues_at = bounds.checked(self.timeline.next_offset(*ids, version))
        with expired_if_missing(self.leases, dataset.tenant_id, [(dataset.id, version)]):
            selection = self.changes.selection(dataset, query)
            groups = LiveGroups(
                timeline=self.timeline,
                tenant_id=dataset.tenant_id,
                dataset_id=dataset.id,
                version=version,
                kinds=_visible(dataset.definition),
            )
            return self._page_of(dataset, version, position, query, selection, groups, bounds, continues_at)

    def _page_of(
        self,
        dataset: Dataset,
        version: int,
        position: SnapshotPosition,
        query: FeedQuery,
        selection: ChangeSelection,
        groups: LiveGroups,
        bounds: FeedBounds,
        continues_at: int,
    ) -> ChangePage:
        rows = _SnapshotRows.of(selection, version)
        at_start = (position.group, position.row) == (0, 0)
        name = "" if at_start else groups.name(position.group)
        scans = chain.from_iterable(
            plan_read(rows.definition, files, where=rows.where, partitions=selection.partitions)
            for files in groups.batches(AFTER_ALL if name is None else name, position.group)
        )
        place = RowPlace(file_group=name or "", row=position.row)
        walked_rows = self.walk.page(rows, scans, place, query.limit)
        following, remaining_rows = None, 0
        if walked_rows.following is not None:
            first, row = walked_rows.following.file_group, walked_rows.following.row
            following = SnapshotPosition(version=version, group=groups.number(first), row=row)
            # At least one: the rows of a merged group are not known.
            remaining_rows = max(groups.rows_from(first) - row, 1)
        changes = self._as_changes(dataset, rows, walked_rows.rows, continues_at)
        return ChangePage(
            events=in_form(changes, query.form, dataset.definition.name),
            schema_id=selection.schema.id,
            form=query.form,
            next_since=continues_at,
            snapshot=following,
            places=_places(version, groups, walked_rows),
            pending=bounds.next_offset - continues_at + remaining_rows,
            earliest=bounds.earliest,
            complete=following is None and query.until is not None and continues_at >= query.until,
            vocabulary=query.vocabulary or dataset.definition.changelog.vocabulary,
        )

    def _as_changes(
        self,
        dataset: Dataset,
        rows: _SnapshotRows,
        table: pa.Table,
        continues_at: int,
    ) -> pa.Table:
        versions = table.column(VERSION_COLUMN)
        distinct = versions.unique()
        times = self.timeline.commit_times(dataset.tenant_id, dataset.id, distinct.to_pylist())
        commit_times = pa.array([times.get(each) for each in distinct.to_pylist()], SYSTEM_TIME)
        offsets = table.column(OFFSET_COLUMN)
        has_offset = pc.and_(offsets.is_valid(), pc.greater_equal(pc.fill_null(offsets, -1), 0))
        event_time = None if rows.event_time is None else table.column(rows.event_time)
        return rows.selection.appends(
            rows.fitted(table, rows.selection.row_schema()),
            # The change that set a row is before the feed that follows, wherever rows do not record it.
            offsets=pc.if_else(has_offset, offsets, pa.scalar(continues_at - 1, pa.int64())),
            versions=versions,
            times=commit_times.take(pc.index_in(versions, value_set=distinct)),
            event_time=event_time,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _SnapshotRows:
    """The rows of a version that a reader of the feed selects. `event_time`: the column that has it, if any.

    They are read under `selection.stored_as`.
    """

    version: int
    definition: DatasetDefinition
    selection: ChangeSelection
    read: pa.Schema
    event_time: str | None

    @classmethod
    def of(cls, selection: ChangeSelection, version: int) -> _SnapshotRows:
        definition, schema = selection.definition, selection.stored_as
        if schema.id != definition.schema.id:
            definition = under_schema(definition, schema)
        event_time = None
        if selection.definition.event_time_field is not None:
            field = selection.definition.schema.field(selection.definition.event_time_field)
            event_time = next((each.name for each in schema.fields if each.id == field.id), None)
        also = () if event_time is None else (event_time,)
        return cls(
            version=version,
            definition=definition,
            selection=selection,
            read=pa.schema([*selection.row_schema(also), *META_FIELDS]),
            event_time=event_time,
        )

    @property
    def where(self) -> Filter | None:
        # Its literals have the types of another schema than the rows.
        return None if self.selection.casts else self.selection.where

    @property
    def selects(self) -> bool:
        return self.selection.selects

    def chosen(self, rows: pa.Table) -> npt.NDArray[np.int64]:
        if self.selection.casts:
            rows = self.fitted(rows, self.selection.deciding_schema())
        return np.flatnonzero(self.selection.chosen(rows))

    def fitted(self, rows: pa.Table, schema: pa.Schema) -> pa.Table:
        """The columns of the table in `schema`, under the requested schema. Raises SchemaMismatch."""
        try:
            return self.selection.fitted(
                rows.select([name for name in schema.names if name in rows.column_names])
            )
        except pa.ArrowInvalid as error:
            since = self.selection.definition.schema.id
            raise self.selection.does_not_fit(
                f"rows of version {self.version}", error, since=since
            ) from error


def _visible(definition: DatasetDefinition) -> tuple[FileKind, ...]:
    """The kinds of the files that have the rows which the feed up to now results in, or decide about rows of logs.

    Under `deferred` the feed has the changes of a log only once it is compacted.
    """
    if definition.changelog.producer is ChangelogProducer.DEFERRED:
        return (FileKind.BASE,)
    return FileKind.BASE, FileKind.LOG, FileKind.TOMBSTONE


def _places(version: int, groups: LiveGroups, walked_rows: WalkedRows) -> SnapshotPlaces:
    numbers = [np.full(len(rows), groups.number(name), dtype=np.int64) for name, rows in walked_rows.places]
    rows = [rows + 1 for _, rows in walked_rows.places]
    nothing = np.zeros(0, dtype=np.int64)
    return SnapshotPlaces(
        version=version, groups=np.concatenate([nothing, *numbers]), rows=np.concatenate([nothing, *rows])
    )
