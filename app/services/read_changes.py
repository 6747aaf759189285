"""Reading the feed: the one way to a page of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from app.lake.changelog import OP_COLUMN, OP_FIELD, Op
from app.lake.dataset import DatasetDefinition
from app.lake.errors import OffsetAhead
from app.lake.forms import ChangeForm, in_form, one_array
from app.services.model import ChangelogSegment, ChangePage, Dataset, FeedBounds
from app.services.ports import ChangelogIndex, FileReader
from app.services.projection import checked_columns

SYSTEM_TIME = pa.timestamp("ms", tz="UTC")
_EVENT_TIME_COLUMN = "_hw_event_time"


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedQuery:
    """What a reader wants of a feed, the same for every page of a walk.

    At most `limit` changes a page; none at or beyond position `until`; of each row the named columns only, unless
    None. The record key need not be among them. `form` is how the changes are told.
    """

    limit: int
    form: ChangeForm = ChangeForm.TWO_EVENT
    until: int | None = None
    columns: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.limit < 1 or (self.until is not None and self.until < 0):
            raise ValueError(f"limit {self.limit} or until {self.until} is out of range")


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadChanges:
    """Pages of a dataset's feed."""

    index: ChangelogIndex
    reader: FileReader

    def page(self, dataset: Dataset, since: int | None, query: FeedQuery) -> ChangePage:
        """The changes from position `since` (None: the head) on, in the form asked for.

        A page never ends between a -C and its +C: it is one change longer than `limit` if need be. An `until`
        between the two ends the page before both. A `since` between the two starts there, with the +C alone, but in the
        forms where the two are one event: that has the offset of the +C, so it is told whole.

        Raises InvalidRequest, OffsetAhead, CorruptFile, NotFound.
        """
        names = checked_columns(dataset, query.columns)
        bounds = self.index.bounds(dataset.tenant_id, dataset.id)
        start = _checked_start(bounds, since)
        end = bounds.next_offset if query.until is None else min(query.until, bounds.next_offset)
        # One change more than asked for, in case the last one opens a pair.
        changes = self._read(dataset, names, start, min(start + query.limit + 1, end))
        if changes.num_rows > query.limit and not _op_is(changes, query.limit - 1, Op.CORRECT_FROM):
            changes = changes.slice(0, query.limit)
        split = _op_is(changes, changes.num_rows - 1, Op.CORRECT_FROM)
        if split:
            changes = changes.slice(0, changes.num_rows - 1)
        next_since = start + changes.num_rows
        if query.form.joins_pairs and start > bounds.earliest and _op_is(changes, 0, Op.CORRECT_TO):
            changes = pa.concat_tables([self._read(dataset, names, start - 1, start), changes])
        return ChangePage(
            events=in_form(changes, query.form, dataset.definition.name),
            form=query.form,
            next_since=next_since,
            pending=bounds.next_offset - next_since,
            earliest=bounds.earliest,
            complete=query.until is not None and next_since + split >= query.until,
        )

    def _read(self, dataset: Dataset, names: Sequence[str], since: int, until: int) -> pa.Table:
        definition = dataset.definition
        tables = [changes_schema(definition, names).empty_table()]
        stored = _stored_schema(definition, names)
        segments = self.index.segments(dataset.tenant_id, dataset.id, since, until) if since < until else []
        for segment in segments:
            first = max(since, segment.first_offset)
            last = min(until, segment.first_offset + segment.file.row_count)
            rows = self.reader.read_slice(segment.file, stored, first - segment.first_offset, last - first)
            tables.append(_as_changes(rows, definition, names, segment, first))
        return pa.concat_tables(tables)


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


def _stored_schema(definition: DatasetDefinition, names: Sequence[str]) -> pa.Schema:
    """What is read of a changelog file: the op and the event time in any case, since they are members of the change."""
    fields = [OP_FIELD, *(field.with_nullable(True) for field in definition.schema.select(names).to_arrow())]
    if definition.event_time_field is not None:
        told = definition.schema.field(definition.event_time_field).to_arrow()
        fields.append(told.with_name(_EVENT_TIME_COLUMN).with_nullable(True))
    return pa.schema(fields)


def changes_schema(definition: DatasetDefinition, names: Sequence[str]) -> pa.Schema:
    """Columns of a change page: the system columns, then the named ones of the row as one struct."""
    declared = definition.schema.to_arrow()
    row = pa.struct([declared.field(name).with_nullable(True).remove_metadata() for name in names])
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
    declared: pa.DataType = definition.schema.to_arrow().field(definition.event_time_field).type
    return declared


def _as_changes(
    stored: pa.Table,
    definition: DatasetDefinition,
    names: Sequence[str],
    segment: ChangelogSegment,
    first_offset: int,
) -> pa.Table:
    schema = changes_schema(definition, names)
    count = stored.num_rows
    row_type = schema.field("row").type
    row = pa.StructArray.from_arrays(
        [one_array(stored.column(name)) for name in names],
        fields=[row_type.field(at) for at in range(len(names))],
    )
    event_type = schema.field("event_time").type
    event_time = (
        pa.nulls(count, event_type)
        if definition.event_time_field is None
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
