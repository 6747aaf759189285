"""Reading the feed: the one way to a page of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.lake.changelog import OP_COLUMN, OP_FIELD, Op
from app.lake.dataset import DatasetDefinition
from app.lake.errors import FieldError, InvalidRequest, NotFound, OffsetAhead, SchemaMismatch
from app.lake.forms import ChangeForm, in_form, one_array
from app.lake.schema import Schema
from app.services.model import ChangelogSegment, ChangePage, Dataset, FeedBounds
from app.services.ports import Catalog, ChangelogIndex
from app.services.projection import projection
from app.services.reader_ports import FileReader

SYSTEM_TIME = pa.timestamp("ms", tz="UTC")
_EVENT_TIME_COLUMN = "_hw_event_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedQuery:
    """What a reader wants of a feed, the same for every page of a walk.

    At most `limit` changes a page; none at or beyond position `until`; of each row the named columns only, unless
    None. The record key need not be among them. `form` is how the changes are told, `schema_id` the schema under which
    the rows are, whichever they were written under: the latest, unless said.
    """

    limit: int
    form: ChangeForm = ChangeForm.TWO_EVENT
    until: int | None = None
    columns: tuple[str, ...] | None = None
    schema_id: int | None = None

    def __post_init__(self) -> None:
        if self.limit < 1 or (self.until is not None and self.until < 0):
            raise ValueError(f"limit {self.limit} or until {self.until} is out of range")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadChanges:
    """Pages of a dataset's feed."""

    catalog: Catalog
    index: ChangelogIndex
    reader: FileReader

    def page(self, dataset: Dataset, since: int | None, query: FeedQuery) -> ChangePage:
        """The changes from position `since` (None: the head) on, in the form asked for.

        A page never ends between a -C and its +C: it is one change longer than `limit` if need be. An `until`
        between the two ends the page before both. A `since` between the two starts there, with the +C alone, but in the
        forms where the two are one event: that has the offset of the +C, so it is told whole.

        Raises InvalidRequest, OffsetAhead, SchemaMismatch (a value that the types of the asked schema cannot hold),
        CorruptFile, NotFound.
        """
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        start = _checked_start(bounds, since)
        end = bounds.next_offset if query.until is None else min(query.until, bounds.next_offset)
        # One change more than asked for, in case the last one opens a pair.
        segments = self._segments(dataset, start, min(start + query.limit + 1, end))
        told = self._told(dataset, segments, query)
        changes = self._read(told, segments, start, min(start + query.limit + 1, end))
        if changes.num_rows > query.limit and not _op_is(changes, query.limit - 1, Op.CORRECT_FROM):
            changes = changes.slice(0, query.limit)
        split = _op_is(changes, changes.num_rows - 1, Op.CORRECT_FROM)
        if split:
            changes = changes.slice(0, changes.num_rows - 1)
        next_since = start + changes.num_rows
        if query.form.joins_pairs and start > bounds.earliest and _op_is(changes, 0, Op.CORRECT_TO):
            before = self._read(told, self._segments(dataset, start - 1, start), start - 1, start)
            changes = pa.concat_tables([before, changes])
        return ChangePage(
            events=in_form(changes, query.form, dataset.definition.name),
            schema_id=told.schema.id,
            form=query.form,
            next_since=next_since,
            pending=bounds.next_offset - next_since,
            earliest=bounds.earliest,
            complete=query.until is not None and next_since + split >= query.until,
        )

    def _segments(self, dataset: Dataset, since: int, until: int) -> list[ChangelogSegment]:
        return self.index.segments(dataset.tenant_id, dataset.id, since, until) if since < until else []

    def _told(self, dataset: Dataset, segments: Sequence[ChangelogSegment], query: FeedQuery) -> _Told:
        """How the rows of these files are told: under a schema no earlier than theirs, unless one is asked for."""
        if any(segment.file.schema_id > dataset.definition.schema.id for segment in segments):
            # The schema has moved on since the reader found the dataset.
            dataset = self.catalog.get(dataset.tenant_id, dataset.id)
        definition = dataset.definition
        schema = definition.schema
        if query.schema_id is not None and query.schema_id != schema.id:
            schema = self._earlier_schema(dataset, query.schema_id)
        return _Told(definition=definition, schema=projection(schema, query.columns))

    def _earlier_schema(self, dataset: Dataset, schema_id: int) -> Schema:
        try:
            return self.catalog.schema(dataset.tenant_id, dataset.id, schema_id).schema
        except NotFound as error:
            detail = f"expected `latest` or 1–{dataset.definition.schema.id}, the id of one of the dataset's schemas"
            raise InvalidRequest(error.detail, [FieldError(pointer="/schema", detail=detail)]) from None

    def _read(self, told: _Told, segments: Sequence[ChangelogSegment], since: int, until: int) -> pa.Table:
        tables = [changes_schema(told.definition, told.schema).empty_table()]
        stored = _stored_schema(told)
        for segment in segments:
            first = max(since, segment.first_offset)
            last = min(until, segment.first_offset + segment.file.row_count)
            try:
                rows = self.reader.read_slice(
                    segment.file, stored, first - segment.first_offset, last - first
                )
            except pa.ArrowInvalid as error:
                raise _does_not_fit(told.schema, segment, error) from error
            tables.append(_as_changes(rows, told, segment, first))
        return pa.concat_tables(tables)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """How rows are told: with the columns of `schema`; what the dataset is now decides the event time."""

    definition: DatasetDefinition
    schema: Schema


def _does_not_fit(schema: Schema, segment: ChangelogSegment, error: pa.ArrowInvalid) -> SchemaMismatch:
    detail = f"expected `latest`, or an id from {segment.file.schema_id} on"
    return SchemaMismatch(
        f"changes of version {segment.version} were written under schema {segment.file.schema_id} and do not fit "
        f"schema {schema.id}: {error}",
        [FieldError(pointer="/schema", detail=detail)],
    )


def _checked_start(bounds: FeedBounds, since: int | None) -> int:
    start = bounds.next_offset if since is None else since
    if start > bounds.next_offset:
        raise OffsetAhead(
            f"since={start} is beyond the head at {bounds.next_offset}: the position is of another or a "
            "recreated dataset; start again from 0, or follow from `now`",
            since=start,
            head=bounds.next_offset,
        )
    return start


def _op_is(changes: pa.Table, at: int, op: Op) -> bool:
    return 0 <= at < changes.num_rows and bool(changes.column("op")[at].as_py() == op)


def _stored_schema(told: _Told) -> pa.Schema:
    """What is read of a changelog file: the op and the event time in any case, since they are members of the change."""
    fields = [OP_FIELD, *(field.with_nullable(True) for field in told.schema.to_arrow())]
    if told.definition.event_time_field is not None:
        declared = told.definition.schema.field(told.definition.event_time_field).to_arrow()
        fields.append(declared.with_name(_EVENT_TIME_COLUMN).with_nullable(True))
    return pa.schema(fields)


def changes_schema(definition: DatasetDefinition, schema: Schema) -> pa.Schema:
    """Columns of a change page: the system columns, then those of `schema` as one struct."""
    row = pa.struct([field.with_nullable(True).remove_metadata() for field in schema.to_arrow()])
    return pa.schema(
        [
            pa.field("offset", pa.int64()),
            pa.field("op", pa.uint8()),
            pa.field("version", pa.int64()),
            pa.field("system_time", SYSTEM_TIME),
            pa.field("event_time", _event_time_type(definition)),
            pa.field("row", row),
        ]
    )


def _event_time_type(definition: DatasetDefinition) -> pa.DataType:
    if definition.event_time_field is None:
        return pa.timestamp("us", tz="UTC")
    return definition.schema.field(definition.event_time_field).to_arrow().type


def _as_changes(stored: pa.Table, told: _Told, segment: ChangelogSegment, first_offset: int) -> pa.Table:
    schema = changes_schema(told.definition, told.schema)
    count = stored.num_rows
    row_type = schema.field("row").type
    row = pa.StructArray.from_arrays(
        [one_array(stored.column(name)) for name in told.schema.names()],
        fields=[row_type.field(at) for at in range(row_type.num_fields)],
    )
    event_time = (
        pa.nulls(count, schema.field("event_time").type)
        if told.definition.event_time_field is None
        else stored.column(_EVENT_TIME_COLUMN)
    )
    columns = [
        pa.array(np.arange(first_offset, first_offset + count, dtype=np.int64)),
        stored.column(OP_COLUMN),
        pa.repeat(pa.scalar(segment.version, pa.int64()), count),
        pa.repeat(pa.scalar(segment.committed_at, SYSTEM_TIME), count),
        event_time,
        row,
    ]
    return pa.table(columns, schema=schema)
