"""Rows with the five meta columns, of read jobs and of exports."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from app.codecs.commit_times import PackedCommitTimes
from app.codecs.meta_on_read import META_SOURCES, versions_of, with_meta
from app.format.dataset import DatasetDefinition
from app.format.schema.schema import Schema
from app.sql.conditions.bound_access import BoundAccess


def rows_schema(shown: Schema) -> pa.Schema:
    """The columns of returned rows. All are nullable, whatever the dataset requires now."""
    return pa.schema([field.with_nullable(True) for field in shown.to_arrow()])


def sources_schema(definition: DatasetDefinition, columns: Sequence[str]) -> pa.Schema:
    """The columns to read where these columns and the meta columns are returned."""
    names = dict.fromkeys([*columns, *definition.record_key])
    return pa.schema([*rows_schema(definition.schema.select(tuple(names))), *META_SOURCES])


def meta_rows(
    rows: pa.Table,
    definition: DatasetDefinition,
    columns: Sequence[str],
    access: BoundAccess,
    commit_times: PackedCommitTimes,
) -> pa.Table:
    """These columns, as the reader may see them, and the meta columns. `rows` has the columns of `sources_schema`."""
    shown, plain = access.shown(rows.select(list(columns))), rows.cast(sources_schema(definition, columns))
    times = commit_times.times(versions_of(plain))
    return with_meta(shown, plain, definition, access.masked, times)
