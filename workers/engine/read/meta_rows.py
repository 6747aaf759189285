"""Rows with meta columns, of read jobs and of exports: the five, and what has corrected a row since."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from app.kernel.changelog.changelog_scan import ChangelogReader
from app.kernel.changelog.correction_marks import CorrectionMarks
from app.kernel.changelog.corrections_since import CorrectionsSince
from app.kernel.codecs.commit_times import PackedCommitTimes
from app.kernel.codecs.meta_on_read import (
    CORRECTED_ON_READ,
    META_ON_READ,
    META_SOURCES,
    versions_of,
    with_corrections,
    with_meta,
)
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.members import key_fields
from app.kernel.format.rows.meta_columns import OFFSET_COLUMN
from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bound_access import BoundAccess


def rows_schema(schema: Schema) -> pa.Schema:
    """The columns of returned rows. All are nullable, whatever the dataset requires now."""
    return pa.schema([field.with_nullable(True) for field in schema.to_arrow()])


def with_meta_fields(
    schema: pa.Schema, commit_times: PackedCommitTimes | None, corrections: CorrectionsSince | None
) -> pa.Schema:
    """These columns, and the meta columns that rows have."""
    five = () if commit_times is None else META_ON_READ
    return pa.schema([*schema, *five, *(() if corrections is None else CORRECTED_ON_READ)])


@dataclass(frozen=True, kw_only=True, slots=True)
class MetaRows:
    """Adds meta columns to rows. `columns`: those of the dataset that are returned. `access`: what the reader sees.

    `commit_times`, `marks`: None where rows have not the five columns, or no marks of corrections.
    """

    definition: DatasetDefinition
    columns: tuple[str, ...]
    access: BoundAccess
    commit_times: PackedCommitTimes | None
    marks: CorrectionMarks | None

    @classmethod
    def of(
        cls,
        definition: DatasetDefinition,
        columns: Sequence[str],
        access: BoundAccess,
        commit_times: PackedCommitTimes | None,
        corrections: CorrectionsSince | None,
        reader: ChangelogReader,
    ) -> MetaRows | None:
        """None where rows have no meta columns. Reads the corrections. Raises CorruptFile."""
        if commit_times is None and corrections is None:
            return None
        return cls(
            definition=definition,
            columns=tuple(columns),
            access=access,
            commit_times=commit_times,
            marks=None if corrections is None else CorrectionMarks.read(reader, corrections),
        )

    @property
    def sources(self) -> pa.Schema:
        """The columns to read."""
        names = dict.fromkeys([*self.columns, *key_fields(self.definition)])
        return pa.schema([*rows_schema(self.definition.schema.select(tuple(names))), *META_SOURCES])

    def shown(self, rows: pa.Table) -> pa.Table:
        """The returned columns, then the meta columns, of rows with the columns of `sources`."""
        table, plain = self.access.shown(rows.select(list(self.columns))), rows.cast(self.sources)
        if self.commit_times is not None:
            times = self.commit_times.times(versions_of(plain))
            table = with_meta(table, plain, self.definition, self.access.masked, times)
        if self.marks is not None:
            table = with_corrections(table, *self.marks.of(plain.column(OFFSET_COLUMN)))
        return table
