"""Statistics of a column of the whole table, from the statistics of its files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import msgspec

from app.kernel.format.file_group import ColumnStatistics
from app.kernel.format.index.column_bounds import comparable_bound
from app.kernel.format.schema.schema import Field, Schema

_UNKNOWN: Final = ColumnStatistics()


class FileStatistics(msgspec.Struct, frozen=True, kw_only=True):
    """The statistics of the columns of one file, by field id."""

    row_count: int
    schema_id: int
    statistics: dict[str, ColumnStatistics]


class ColumnSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds and nulls of a column in all base files, deleted rows included; and its distinct values."""

    name: str
    """Its name."""
    minimum: Annotated[Any, msgspec.Meta(examples=[1])]
    """The least value, as JSON; null where not known of each file."""
    maximum: Annotated[Any, msgspec.Meta(examples=[120])]
    """The greatest value, as JSON; null where not known of each file."""
    null_count: int | None
    """How many nulls there are; null where not known of each file."""
    distinct_count: int | None = None
    """An estimate of the number of distinct values that readers saw at `analyzed_version`; nulls are no value."""
    analyzed_version: int | None = None
    """The version at which the values were counted; null if the column has not been analyzed."""


class _Bound:
    """The least or greatest bound so far; `known` while every file with a value has a bound."""

    def __init__(self, *, greatest: bool) -> None:
        self.known = True
        self.value: Any = None
        self._comparable: Any = None
        self._greatest = greatest

    def take(self, value: Any, comparable: Any) -> None:
        if comparable is None:
            self.known, self.value = False, None
        elif self.known and (self._comparable is None or (comparable > self._comparable) is self._greatest):
            self.value, self._comparable = value, comparable


class _ColumnTotals:
    """One column, file by file."""

    def __init__(self, field: Field, schemas: Mapping[int, Schema]) -> None:
        self._field = field
        self._id = str(field.id)
        self._type = field.data_type()
        # Files from before the column was added have no value in it.
        self._before = {
            schema.id for schema in schemas.values() if all(field.id != other.id for other in schema.fields)
        }
        self._minimum, self._maximum = _Bound(greatest=False), _Bound(greatest=True)
        self._nulls: int | None = 0

    def take(self, file: FileStatistics) -> None:
        statistics = file.statistics.get(self._id, _UNKNOWN)
        if file.schema_id in self._before:
            statistics = ColumnStatistics(null_count=file.row_count)
        if self._nulls is not None:
            self._nulls = None if statistics.null_count is None else self._nulls + statistics.null_count
        if statistics.null_count != file.row_count:
            for bound, value in ((self._minimum, statistics.minimum), (self._maximum, statistics.maximum)):
                bound.take(value, comparable_bound(value, self._type))

    def summary(self) -> ColumnSummary:
        return ColumnSummary(
            name=self._field.name,
            minimum=self._minimum.value,
            maximum=self._maximum.value,
            null_count=self._nulls,
        )


def summarize_columns(
    fields: Sequence[Field], schemas: Mapping[int, Schema], files: Iterable[FileStatistics]
) -> list[ColumnSummary]:
    """The summaries of some columns, in order. `schemas`: by id, every schema that a file may be written under."""
    columns = [_ColumnTotals(field, schemas) for field in fields]
    for file in files:
        for column in columns:
            column.take(file)
    return [column.summary() for column in columns]
