"""The selection of changes that a reader requests: its columns, its filter, and the resulting change rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from app.kernel.changelog.changelog_run import SYSTEM_TIME, ChangelogRun
from app.kernel.changelog.delivery_forms import one_array
from app.kernel.commit.read_plan import in_globs
from app.kernel.format.dataset import BucketMode, ChangelogProducer, DatasetDefinition
from app.kernel.format.errors import FieldError, RestrictedGrant, SchemaMismatch
from app.kernel.format.file_group import ChangelogFile, partition_of
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.row_partitions import partition_codes
from app.kernel.format.partition.statistics import partition_statistics
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, CORRECTS_FIELD, resolved_offsets
from app.kernel.format.rows.projection import check_partitions, projection
from app.kernel.format.schema.schema import RESERVED_PREFIX, Schema
from app.kernel.format.schema.schema_projection import project_rows
from app.kernel.sql.conditions.bound_access import WHOLE, BoundAccess, bind_access
from app.kernel.sql.conditions.evaluate import matches
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from app.kernel.sql.conditions.tree import Filter

_EVENT_TIME_COLUMN = "_hw_event_time"
_VISIBLE_COLUMN = "_hw_visible"


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeSelection:
    """Changes with the columns of `shown_schema`, a subset of those of `schema`.

    `definition`: the current dataset, which determines event time and partition. A change is selected if it matches
    `where`, a filter on rows of `schema`, and if its partition matches one of the globs `partitions`; None selects all.
    `access`: what the reader may see of the rows.

    `stored_as`: `schema` with types that hold all stored values. Rows are read under it, and the access applies to
    these: a hidden value is never cast to a type that may not hold it, as the failure would disclose the value. If it
    differs from `schema`, rows are `fitted` before anything else is done with them; otherwise `where` includes the
    condition of the access.
    """

    definition: DatasetDefinition
    schema: Schema
    shown_schema: Schema
    where: Filter | None
    partitions: tuple[str, ...] | None
    stored_as: Schema
    access: BoundAccess = WHOLE

    @classmethod
    def of(
        cls,
        definition: DatasetDefinition,
        schema: Schema,
        *,
        columns: Sequence[str] | None,
        where: str | None,
        partitions: tuple[str, ...] | None,
        stored_as: Schema | None = None,
        access: RowAccess = EVERYTHING,
    ) -> ChangeSelection:
        """The selection of a reader's request. `stored_as`: None if `schema` holds all stored values.

        Raises InvalidRequest, InvalidFilter, MaskedColumn, GrantNotApplicable, RestrictedGrant.
        """
        check_feed_access(definition, access)
        stored_as = schema if stored_as is None else stored_as
        bound = bind_access(access, definition.schema, stored_as)
        check_partitions(definition, partitions)
        bound.check_partitions(definition, partitions)
        return cls(
            definition=definition,
            schema=schema,
            shown_schema=projection(schema, columns),
            where=_combined(bound, None if where is None else _parsed(where, schema), stored_as == schema),
            partitions=partitions,
            stored_as=stored_as,
            access=bound,
        )

    @property
    def selects(self) -> bool:
        """Whether some changes that are read may not be selected."""
        return self.where is not None or self.partitions is not None or self.access.where is not None

    @property
    def casts(self) -> bool:
        """Whether some rows may not fit `schema`."""
        return self.stored_as != self.schema

    @property
    def _by_row(self) -> bool:
        """Whether the partition is only known by row: a group of key_dynamic has rows of any partition."""
        return self.partitions is not None and self.definition.bucket.mode is BucketMode.KEY_DYNAMIC

    def rules_out(self, file: ChangelogFile) -> bool:
        """Whether the partition of the file excludes all of its changes."""
        if not self.selects or self.definition.bucket.mode is BucketMode.KEY_DYNAMIC:
            return False
        path = partition_of(file.file_group)
        if self.partitions is not None and not in_globs(path, self.partitions):
            return True
        if self.where is None:
            return False
        statistics = partition_statistics(path, self.definition.partition_by, self.schema)
        return not may_match(self.where, statistics, self.schema, file.row_count)

    def stored_schema(self, also: Sequence[str] = ()) -> pa.Schema:
        """The columns to read from a changelog file: always those of the members of a change beside its row."""
        fields = [
            OP_FIELD,
            CORRECTS_FIELD,
            *self._fields({*self.shown_schema.names(), *also, *self._deciding()}),
        ]
        if self.definition.event_time_field is not None:
            field = self.definition.schema.field(self.definition.event_time_field).to_arrow()
            fields.append(field.with_name(_EVENT_TIME_COLUMN).with_nullable(True))
        return pa.schema(fields)

    def row_schema(self, also: Sequence[str] = ()) -> pa.Schema:
        """The columns to read of rows of the table: those shown, those that decide, and these."""
        return pa.schema(self._fields({*self.shown_schema.names(), *also, *self._deciding()}))

    def deciding_schema(self) -> pa.Schema:
        """The columns of a changelog file that determine which of its rows are selected."""
        return pa.schema([OP_FIELD, *self._fields(self._deciding())])

    def _deciding(self) -> set[str]:
        sources = partition_sources(self.definition) if self._by_row else ()
        filters = (each for each in (self.where, self.access.where) if each is not None)
        return {*sources, *(name for each in filters for name in each.columns())}

    def _fields(self, names: set[str]) -> list[pa.Field]:
        return _nullable_fields(self.stored_as, names)

    def fitted(self, rows: pa.Table) -> pa.Table:
        """Rows as they were read, under `schema`. Hidden rows and hidden values are null.

        Columns that are not of the dataset stay as they are. Raises pyarrow.ArrowInvalid for a value that the reader
        may see and that does not fit.
        """
        if not self.casts:
            return rows
        names = [name for name in rows.column_names if not name.startswith(RESERVED_PREFIX)]
        shown = self.access.shown(rows.select(names))
        visible = self.visible(rows)
        if visible is not None:
            # At an index of null there is a null.
            shown = shown.take(pa.array(np.arange(rows.num_rows), mask=~visible))
            rows = rows.append_column(_VISIBLE_COLUMN, pa.array(visible))
        fitted = project_rows(shown, pa.schema(_nullable_fields(self.schema, set(names))))
        for field in fitted.schema:
            rows = rows.set_column(rows.schema.get_field_index(field.name), field, fitted.column(field.name))
        return rows

    def does_not_fit(self, rows: str, error: pa.ArrowInvalid, *, since: int) -> SchemaMismatch:
        """The error for `rows` that `fitted` has refused. `since`: the id of a schema that they fit."""
        # What Arrow says repeats a value.
        reason = "" if self.access.restricted else f": {error}"
        detail = f"expected `latest`, or an id from {since} on"
        return SchemaMismatch(
            f"{rows} do not fit schema {self.schema.id}{reason}",
            [FieldError(pointer="/schema", detail=detail)],
        )

    def chosen(self, rows: pa.Table) -> npt.NDArray[np.bool_]:
        """Whether each of these rows of a changelog file is selected, without regard to pairs: shape (rows,)."""
        mask = np.ones(rows.num_rows, dtype=np.bool_)
        if self.casts and (visible := self.visible(rows)) is not None:
            mask &= visible
        if self.where is not None:
            mask &= matches(self.where, rows)
        if self._by_row:
            codes, paths = partition_codes(rows, self.definition.partition_by)
            path_matches = [in_globs(path, self.partitions or ()) for path in paths]
            mask &= np.array(path_matches, dtype=np.bool_)[codes]
        return mask

    def visible(self, rows: pa.Table) -> npt.NDArray[np.bool_] | None:
        """Whether the reader may see each of these rows: shape (rows,); None if it may see all rows."""
        if self.access.where is None:
            return None
        if _VISIBLE_COLUMN in rows.column_names:
            visible: npt.NDArray[np.bool_] = rows.column(_VISIBLE_COLUMN).to_numpy()
            return visible
        return matches(self.access.where, rows)

    def changes_schema(self) -> pa.Schema:
        """The columns of a change page: the system columns, and those of `shown_schema` as one struct."""
        row = pa.struct(
            [field.with_nullable(True).remove_metadata() for field in self.shown_schema.to_arrow()]
        )
        return pa.schema(
            [
                pa.field("offset", pa.int64()),
                pa.field("op", pa.uint8()),
                pa.field("version", pa.int64()),
                pa.field("system_time", SYSTEM_TIME),
                pa.field("event_time", self._event_time_type()),
                pa.field("row", row),
                pa.field("corrects_offset", pa.int64()),
            ]
        )

    def _event_time_type(self) -> pa.DataType:
        if self.definition.event_time_field is None:
            return pa.timestamp("us", tz="UTC")
        return self.definition.schema.field(self.definition.event_time_field).to_arrow().type

    def changes(self, rows: pa.Table, run: ChangelogRun, offsets: npt.NDArray[np.int64]) -> pa.Table:
        """The changes of rows of changelog files with these offsets in the run."""
        versions, times, first_offsets = run.origins(offsets)
        return self._assembled(
            rows,
            offsets=pa.array(offsets),
            ops=rows.column(OP_COLUMN),
            versions=versions,
            times=times,
            event_time=None if self.definition.event_time_field is None else rows.column(_EVENT_TIME_COLUMN),
            corrects=resolved_offsets(rows.column(CORRECTS_COLUMN), first_offsets),
        )

    def appends(
        self,
        rows: pa.Table,
        *,
        offsets: pa.ChunkedArray,
        versions: pa.ChunkedArray,
        times: pa.ChunkedArray,
        event_time: pa.ChunkedArray | None,
    ) -> pa.Table:
        """Rows of the table as changes that append them. The others are the members of the changes, by row."""
        ops = pa.array(np.full(rows.num_rows, Op.APPEND, dtype=np.uint8))
        return self._assembled(
            rows,
            offsets=offsets,
            ops=ops,
            versions=versions,
            times=times,
            event_time=event_time,
            corrects=pa.nulls(rows.num_rows, pa.int64()),
        )

    def _assembled(
        self,
        rows: pa.Table,
        *,
        offsets: pa.Array | pa.ChunkedArray,
        ops: pa.Array | pa.ChunkedArray,
        versions: pa.Array | pa.ChunkedArray,
        times: pa.Array | pa.ChunkedArray,
        event_time: pa.ChunkedArray | None,
        corrects: pa.Array | pa.ChunkedArray,
    ) -> pa.Table:
        schema = self.changes_schema()
        row_type = schema.field("row").type
        masked_rows = self.access.shown(rows)
        row = pa.StructArray.from_arrays(
            [one_array(masked_rows.column(name)) for name in self.shown_schema.names()],
            fields=[row_type.field(at) for at in range(row_type.num_fields)],
        )
        source = self.definition.event_time_field
        if event_time is None or source is None or self.access.hides_any([source]):
            event_time = pa.nulls(rows.num_rows, schema.field("event_time").type)
        columns = [offsets, ops, versions, times, event_time, row, corrects]
        return pa.table(columns, schema=schema)


def _combined(access: BoundAccess, where: Filter | None, one_schema: bool) -> Filter | None:
    """The filter of the reader, with the condition of the access if both are of one schema. Raises MaskedColumn."""
    combined = access.selecting(where)
    return combined if one_schema else where


def _nullable_fields(schema: Schema, names: set[str]) -> list[pa.Field]:
    read = schema.select([name for name in schema.names() if name in names])
    return [field.with_nullable(True) for field in read.to_arrow()]


def check_feed_access(definition: DatasetDefinition, access: RowAccess) -> None:
    """Raises RestrictedGrant if the feed does not have the rows that the conditions of the access are about."""
    if access.where and definition.changelog.producer is ChangelogProducer.INPUT:
        raise RestrictedGrant(
            f"the feed of {definition.name!r} has rows as they were sent (changelog.producer is 'input'), so it "
            "cannot be determined which of them the `where` of the grants of this key is true of: read the table",
            dataset=definition.name,
        )


@lru_cache(maxsize=256)
def _parsed(text: str, schema: Schema) -> Filter:
    # A reader of a feed repeats the same request, which mostly returns nothing.
    return parse_filter(text, schema)
