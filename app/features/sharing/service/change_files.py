"""The changes of versions as files of Delta's change data feed: one for each version and view.

The rows are those of the feed as the reader sees it. They are written under the schema of the last version that the
reader requested, so that all files of a response have the same columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.features.objects.ports import ObjectContent, ServedTable
from app.features.objects.service.renderings import Renderings
from app.features.objects.service.unlisted_tree import UnlistedTree
from app.features.objects.values import SHARE, SHARE_VECTORS
from app.features.rendered_files.service.objects import RenderedObjects, rendering_key
from app.features.rendered_files.values import RenderedRows, RenderingOrigin
from app.features.sharing.repository.change_versions import ChangeVersionStore
from app.features.sharing.values import ChangeVersion
from app.infra.files.checksums import HashingSink
from app.infra.files.parquet_file import parquet_sink
from app.kernel.changelog.delivery_forms import ChangeForm, one_array
from app.kernel.format.file_format import FileCompression
from app.kernel.format.rows.row_hashes import row_hashes
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import bind_access
from app.kernel.sql.conditions.row_access import RowAccess

CHANGES_SEGMENT: Final = "changes"
"""The first segment of the paths of these files below the location of a table."""
CHANGE_TYPE: Final = pa.field("_change_type", pa.string(), nullable=False)
"""The column that says what a row is: insert, delete, update_preimage or update_postimage."""
_PAGE_CHANGES: Final = 128 * 1024
# How many changes are put into another order at once.
_HIDDEN_ORDER_CHANGES: Final = 1024 * 1024
_ROW_GROUP_ROWS: Final = 512 * 1024
_PATH: Final = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,17})/([0-9a-f]{32})\.parquet", re.ASCII)
# Part of each key: increment it when the same changes are written as other bytes.
_EDITION: Final = 2
_VIEW_BYTES: Final = 8


@dataclass(frozen=True, kw_only=True)
class ChangeView:
    """What a reader sees of changes. `schema`: that of the rows."""

    dataset: Dataset
    access: RowAccess
    schema: Schema

    @cached_property
    def digest(self) -> str:
        """16 hexadecimal digits: views with equal ones have equal files."""
        bound = bind_access(self.access, self.dataset.definition.schema, self.schema)
        columns = [
            (field.id, field.name, field.type, field.nullable, field.member_ids or {})
            for field in self.schema.fields
        ]
        facts = (_EDITION, columns, sorted(bound.masked), sorted(set(self.access.where)))
        return blake2b(msgspec.json.encode(facts), digest_size=_VIEW_BYTES).hexdigest()

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        """The columns of a file. Any may be null: hidden values are."""
        fields = [field.to_arrow().with_nullable(True) for field in self.schema.fields]
        return pa.schema([*fields, CHANGE_TYPE])


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeRendering:
    """The file of one version (`Rendering`)."""

    feed: ReadChanges
    selection: ChangeView
    source: ChangeVersion

    @property
    def key(self) -> bytes:
        """See `Rendering`."""
        return f"changes {self.source.version} {self.selection.digest}".encode()

    @property
    def view(self) -> str:
        """See `Rendering`."""
        return self.selection.digest

    @property
    def origin(self) -> RenderingOrigin:
        """See `Rendering`."""
        return RenderingOrigin(version=self.source.version)

    def write(self, sink: HashingSink) -> RenderedRows:
        """See `Rendering`. Raises OffsetExpired, SchemaMismatch, GrantNotApplicable, RestrictedGrant, too."""
        schema = self.selection.arrow_schema
        query = FeedQuery(
            form=ChangeForm.DELTA,
            limit=_PAGE_CHANGES,
            until=self.source.next_offset,
            schema_id=self.selection.schema.id,
            access=self.selection.access,
        )
        in_order = self._in_hidden_order if self.selection.access.masked else self._in_feed_order
        # They are read once or twice, so the fastest form is the best.
        with parquet_sink(
            sink, "changes", schema, row_group_rows=_ROW_GROUP_ROWS, compression=FileCompression.LZ4
        ) as parquet:
            for rows in in_order(query):
                parquet.write(rows)
            if not parquet.rows:
                return RenderedRows(row_count=0)
            parquet.finish()
        return RenderedRows(row_count=parquet.rows)

    def _in_feed_order(self, query: FeedQuery) -> Iterator[pa.Table]:
        position = self.source.first_offset
        while position < self.source.next_offset:
            page = self.feed.page(self.selection.dataset, position, query)
            if page.events.table.num_rows:
                yield _rows(page.events.table, self.selection.arrow_schema)
            if page.next_since <= position:
                break
            position = page.next_since

    def _in_hidden_order(self, query: FeedQuery) -> Iterator[pa.Table]:
        """The rows by their hashes: a commit has changes by partition and key, whose order would show masked values.

        Each round over the feed takes a part of the hashes, as many rows as fit into memory.
        """
        change_count = self.source.next_offset - self.source.first_offset
        parts = np.uint64(-(-change_count // _HIDDEN_ORDER_CHANGES))
        for part in range(int(parts)):
            tables, hashes = [self.selection.arrow_schema.empty_table()], [np.zeros(0, dtype=np.uint64)]
            for rows in self._in_feed_order(query):
                of_rows = row_hashes(rows)
                in_part = np.flatnonzero(of_rows % parts == part)
                tables.append(rows.take(pa.array(in_part)))
                hashes.append(of_rows[in_part])
            order = np.argsort(np.concatenate(hashes), kind="stable")
            yield pa.concat_tables(tables).take(pa.array(order))


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeFile:
    """A file of changes. `path`: below the location of the table."""

    version: ChangeVersion
    path: str
    content: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeFiles(UnlistedTree):
    """Makes files of changes, and finds them (`ObjectTree`)."""

    feed: ReadChanges
    objects: RenderedObjects
    versions: ChangeVersionStore
    renderings: Renderings
    segment: str = CHANGES_SEGMENT

    def require(
        self, dataset: Dataset, access: RowAccess, schema: Schema, versions: Sequence[ChangeVersion]
    ) -> list[ChangeFile]:
        """The files of the versions of which the access shows changes. Raises RenderingUnderWay, and what
        `ChangeRendering.write` raises.
        """
        view = ChangeView(dataset=dataset, access=access, schema=schema)
        entries = self.objects.require(dataset, [self._rendering(view, each) for each in versions])
        return [
            ChangeFile(
                version=version,
                path=f"{CHANGES_SEGMENT}/{schema.id}/{version.version}/{each.content}.parquet",
                content=each.content,
                size_bytes=each.size_bytes,
            )
            for version, each in zip(versions, entries, strict=True)
            if each.row_count
        ]

    def find(self, table: ServedTable, path: str) -> ObjectContent:
        """See `ObjectTree`. The file is found if the present access shows exactly these changes."""
        names = _PATH.fullmatch(path)
        if names is None or table.variant not in (SHARE, SHARE_VECTORS):
            raise _missing()
        dataset = table.dataset
        schema = next((each for each in self.renderings.schemas(dataset) if each.id == int(names[1])), None)
        number = int(names[2])
        versions = self.versions.versions(dataset.tenant_id, dataset.id, number, number, 1)
        if schema is None or not versions:
            raise _missing()
        view = ChangeView(dataset=dataset, access=table.access, schema=schema)
        rendering = self._rendering(view, versions[0])
        key = rendering_key(rendering)
        entry = self.objects.store.find(dataset.tenant_id, dataset.id, [key]).get(key)
        if entry is None or entry.content != names[3]:
            raise _missing()
        return self.objects.content(dataset, rendering, entry)

    def _rendering(self, view: ChangeView, version: ChangeVersion) -> ChangeRendering:
        return ChangeRendering(feed=self.feed, selection=view, source=version)


def _rows(events: pa.Table, schema: pa.Schema) -> pa.Table:
    """The events of a page as rows of a file."""
    columns = [*one_array(events.column("row")).flatten(), events.column(CHANGE_TYPE.name)]
    return pa.Table.from_arrays(
        [
            column if column.type.equals(field.type) else column.cast(field.type)
            for column, field in zip(columns, schema, strict=True)
        ],
        schema=schema,
    )


def _missing() -> NotFound:
    return NotFound("the table has no such file of changes for this reader: request the changes again")
