"""Column statistics from the footer of a Parquet file: of the whole file, and of each row group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import stored_bound
from app.kernel.format.rows.file_columns import file_type
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.schema_projection import field_id
from app.kernel.format.schema.types import DataType
from app.kernel.sql.conditions.prune import RowFilter, may_match
from app.kernel.sql.conditions.tree import Filter


class _Place(NamedTuple):
    """A field of a schema: its id as a text, and its type."""

    id: str
    type: DataType

    @classmethod
    def of(cls, field: Field) -> _Place:
        return cls(str(field.id), field.data_type())


def column_statistics(metadata: pq.FileMetaData, schema: Schema) -> dict[str, ColumnStatistics]:
    """Bounds and null counts of the flat columns, by field id, from the footer."""
    columns = _flat_columns(metadata, {field.name: _Place.of(field) for field in schema.fields})
    return _of_groups(metadata, columns, range(metadata.num_row_groups))


def row_ranges(
    parquet: pq.ParquetFile, where: Filter, schema: Schema, first_row: int, rows: int
) -> Iterator[tuple[int, int]]:
    """The parts of the rows [first_row, first_row + rows) that may match: one [first, end) per row group, in order.

    `schema`: the schema of the filter, whatever schema the file was written under.
    """
    metadata = parquet.metadata
    inside: dict[int, tuple[int, int]] = {}
    start = 0
    for group in range(metadata.num_row_groups):
        end = start + metadata.row_group(group).num_rows
        begin, stop = max(first_row, start), min(first_row + rows, end)
        if begin < stop:
            inside[group] = begin, stop
        start = end
    for group in row_groups(parquet, RowFilter(where=where, schema=schema), inside):
        yield inside[group]


def row_groups(
    parquet: pq.ParquetFile, row_filter: RowFilter, numbers: Iterable[int] | None = None
) -> Iterator[int]:
    """The row groups (out of all, if None) that may have matching rows. Groups that bounds exclude are omitted."""
    where, schema, metadata = row_filter.where, row_filter.schema, parquet.metadata
    filter_types = {
        field.id: field.to_arrow().type for field in schema.fields if field.name in where.columns()
    }
    places = {field.id: _Place.of(field) for field in schema.fields}
    file_fields = {field_id(field): field for field in parquet.schema_arrow}
    # A bound is one of the stored values; a cast to another type might round values past it.
    comparable = {
        file_fields[number].name: places[number]
        for number, kind in filter_types.items()
        if number in file_fields and file_fields[number].type in (kind, file_type(kind))
    }
    columns = _flat_columns(metadata, comparable)
    for group in range(metadata.num_row_groups) if numbers is None else numbers:
        count = metadata.row_group(group).num_rows
        group_statistics = _of_groups(metadata, columns, [group])
        # Rows from before a column was added have no value of it.
        group_statistics |= {
            str(number): ColumnStatistics(null_count=count)
            for number in filter_types
            if number not in file_fields
        }
        if may_match(where, group_statistics, schema, count):
            yield group


def _flat_columns(metadata: pq.FileMetaData, places: Mapping[str, _Place]) -> dict[int, _Place]:
    """The fields of flat columns by their numbers in the file. `places`: by name."""
    columns = {}
    for number in range(metadata.num_columns):
        column = metadata.schema.column(number)
        # A member `b` of a struct `a` has the path of a column `a.b`, but another name.
        if column.path in places and column.path == column.name:
            columns[number] = places[column.path]
    return columns


def _of_groups(
    metadata: pq.FileMetaData, columns: Mapping[int, _Place], groups: Iterable[int]
) -> dict[str, ColumnStatistics]:
    numbers = list(groups)
    field_statistics: dict[str, ColumnStatistics] = {}
    for number, field in columns.items():
        parts = [metadata.row_group(group).column(number).statistics for group in numbers]
        if parts and all(part is not None for part in parts):
            field_statistics[field.id] = _merged(parts, field.type)
    return field_statistics


def _merged(parts: list[Any], data_type: DataType) -> ColumnStatistics:
    # Parquet omits bounds that are very long. So only a row group of nulls may lack them: it adds nothing.
    has_bounds = all(part.has_min_max or (part.has_null_count and part.num_values == 0) for part in parts)
    parts_with_bounds = [part for part in parts if part.has_min_max] if has_bounds else []
    nulls = sum(part.null_count for part in parts) if all(part.has_null_count for part in parts) else None
    return ColumnStatistics(
        minimum=stored_bound(min((part.min for part in parts_with_bounds), default=None), data_type),
        maximum=stored_bound(max((part.max for part in parts_with_bounds), default=None), data_type),
        null_count=nulls,
    )
