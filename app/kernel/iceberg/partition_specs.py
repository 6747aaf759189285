"""Partition specs of Iceberg, and the values that the paths of our partitions have under them.

A spec is published if Iceberg has a transform for every entry of `partition_by`. It has none for `bucket`: its hash is
another. For a `uuid`, which Iceberg has as `fixed[16]`, none is published: its Java library reads such values of
manifests as if they had a length. Files whose partition has no values under the spec belong to the spec without fields,
whose id is 0: those of groups with rows of several partitions, and those with a value that the path has only a hash of.
"""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.fields import (
    PartitionField,
    PartitionSyntaxError,
    Transform,
    parse_partition,
    partition_name,
    source_type,
)
from app.kernel.format.partition.segments import NULL_VALUE, read_segment, segment
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import DATE, INT32, INT64, DataType, Decimal, FlatType, Integer, Timestamp
from app.kernel.format.schema.types.nested import member_path_below
from app.kernel.format.schema.types.uuids import UUID

UNPARTITIONED_ID: Final = 0
PARTITIONED_ID: Final = 1
FIRST_PARTITION_FIELD: Final = 1_000
# Iceberg's Java library adds the width to a remainder in 32 bits.
_INT_WIDTH_MAX: Final = 2**30
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = _EPOCH.date()
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_ZONE: Final = "+00:00"
_EXACT: Final = decimal.Context(prec=100)

PartitionValue = int | str | bytes | bool | None
"""A value in a manifest: dates as days and times as microseconds since 1970, decimals without their point."""


class PartitionColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a partition spec. `entry`: the entry of `partition_by`, `source`: the type of the column."""

    id: int
    name: str
    source_id: int
    source: FlatType
    entry: PartitionField

    @property
    def transform(self) -> str:
        """The transform, as Iceberg writes it."""
        name = self.entry.transform.value
        return name if self.entry.argument is None else f"{name}[{self.entry.argument}]"

    @property
    def result(self) -> str:
        """Iceberg's type of the values of partitions."""
        match self.entry.transform:
            case Transform.IDENTITY | Transform.TRUNCATE:
                return self.source.iceberg
            case Transform.DAY:
                return "date"
            case _:
                return "int"


def partition_columns(definition: DatasetDefinition) -> tuple[PartitionColumn, ...]:
    """The fields of the partition spec; empty if an entry of `partition_by` has no transform of Iceberg."""
    columns: list[PartitionColumn] = []
    for number, text in enumerate(definition.partition_by, FIRST_PARTITION_FIELD):
        column = _column(number, parse_partition(text), definition.schema, {each.name for each in columns})
        if column is None:
            return ()
        columns.append(column)
    return tuple(columns)


def _column(number: int, entry: PartitionField, schema: Schema, others: set[str]) -> PartitionColumn | None:
    try:
        source = source_type(entry.path, {field.name: field.data_type() for field in schema.fields})
        source_id = _source_id(schema.field(entry.path[0]), entry.path[1:])
    except (PartitionSyntaxError, KeyError):
        return None
    if source_id is None or not isinstance(source, FlatType) or not _has_transform(entry, source):
        return None
    name = _free_name(entry, {*_full_names(schema), *others})
    return PartitionColumn(id=number, name=name, source_id=source_id, source=source, entry=entry)


def _has_transform(entry: PartitionField, source: FlatType) -> bool:
    if entry.transform is Transform.TRUNCATE and isinstance(source, Integer):
        return (entry.argument or 0) <= _INT_WIDTH_MAX
    return entry.transform is not Transform.BUCKET and source != UUID


def _source_id(field: Field, members: tuple[str, ...]) -> int | None:
    if not members:
        return field.id
    path = ""
    for name in members:
        path = member_path_below(path, name)
    return (field.member_ids or {}).get(path)


def _full_names(schema: Schema) -> Iterator[str]:
    """The names of all columns and nested fields."""
    for field in schema.fields:
        yield field.name
        yield from (f"{field.name}.{path}" for path in field.member_ids or {})


def _free_name(entry: PartitionField, taken: set[str]) -> str:
    """The name of a field of the spec: that of its source without a transform, else one that nothing else has."""
    name = partition_name(entry)
    while entry.transform is not Transform.IDENTITY and name in taken:
        name += "_"
    return name


def partition_spec(definition: DatasetDefinition) -> dict[str, Any]:
    """The partition spec in Iceberg's JSON form: with id 1, or without fields and with id 0."""
    return spec_of(partition_columns(definition))


def spec_of(columns: tuple[PartitionColumn, ...]) -> dict[str, Any]:
    """The partition spec with these fields in Iceberg's JSON form."""
    fields = [
        {"source-id": each.source_id, "field-id": each.id, "name": each.name, "transform": each.transform}
        for each in columns
    ]
    return {"spec-id": PARTITIONED_ID if fields else UNPARTITIONED_ID, "fields": fields}


def partition_values(definition: DatasetDefinition, partition_path: str) -> tuple[PartitionValue, ...] | None:
    """`values_of` for a single partition. None too if the spec has no fields."""
    columns = partition_columns(definition)
    return values_of(columns, partition_path) if columns else None


def values_of(columns: tuple[PartitionColumn, ...], partition_path: str) -> tuple[PartitionValue, ...] | None:
    """The values of the partition at the path; None if the path does not have all of them.

    The empty path has no values: a group under it has rows of several partitions.
    """
    segments = partition_path.split("/") if partition_path else []
    if len(segments) != len(columns):
        return None
    values: list[PartitionValue] = []
    for text, column in zip(segments, columns, strict=True):
        try:
            values.append(_value(text, column))
        except (ValueError, ArithmeticError):
            return None
    return tuple(values)


def _value(text: str, column: PartitionColumn) -> PartitionValue:
    """The value in a segment. Raises ValueError, ArithmeticError if it is not there or is out of range."""
    name = partition_name(column.entry)
    value = read_segment(text, name)
    if value is None:
        if text != segment(name, None) or not text.endswith(f"={NULL_VALUE}"):
            raise ValueError(f"the segment {text!r} has only a hash of the value")
        return None
    match column.entry.transform:
        case Transform.IDENTITY:
            return plain_value(column.source.path_value(value), column.source)
        case Transform.TRUNCATE if isinstance(column.source, Integer):
            return _in_range(int(value), column.result)
        case Transform.TRUNCATE:
            return value
        case transform:
            return _period(value, transform)


def _in_range(value: int, kind: str) -> int:
    if not (INT32 if kind == "int" else INT64).holds_integers(value, value):
        raise ArithmeticError(f"{value} is out of the range of {kind}")
    return value


def plain_value(value: Any, kind: DataType) -> PartitionValue:
    """A Python value of a type as a number, text or bytes."""
    match kind:
        case Timestamp():
            zoned: dt.datetime = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
            return (zoned - _EPOCH) // _MICROSECOND
        case Decimal():
            return int(value.scaleb(kind.scale, context=_EXACT))
    if kind == DATE:
        return int((value - _EPOCH_DAY).days)
    plain: PartitionValue = value
    return plain


def json_values(
    columns: tuple[PartitionColumn, ...], values: tuple[PartitionValue, ...]
) -> list[int | str | bool | None]:
    """The values of a partition in Iceberg's JSON form, as plans of scans have them."""
    return [_json_value(column, value) for column, value in zip(columns, values, strict=True)]


def _json_value(column: PartitionColumn, value: PartitionValue) -> int | str | bool | None:
    if isinstance(value, bytes):
        return value.hex().upper()
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    match column.result:
        case "date":
            return (_EPOCH_DAY + dt.timedelta(days=value)).isoformat()
        case "timestamp" | "timestamptz":
            moment = (_EPOCH + value * _MICROSECOND).isoformat(timespec="microseconds")
            return moment if column.result == "timestamptz" else moment.removesuffix(_ZONE)
    if isinstance(column.source, Decimal):
        return f"{decimal.Decimal(value).scaleb(-column.source.scale, context=_EXACT):f}"
    return value


def _period(text: str, transform: Transform) -> int:
    """The number of a year, month, day or hour since 1970."""
    parts = [int(part) for part in text.split("-")]
    match transform:
        case Transform.YEAR:
            return parts[0] - _EPOCH.year
        case Transform.MONTH:
            return (parts[0] - _EPOCH.year) * 12 + parts[1] - 1
    days = (dt.date(parts[0], parts[1], parts[2]) - _EPOCH_DAY).days
    return days if transform is Transform.DAY else days * 24 + parts[3]


def last_partition_id(columns: tuple[PartitionColumn, ...]) -> int:
    """The highest id of a field of a spec; the number before the first id without fields."""
    return FIRST_PARTITION_FIELD + len(columns) - 1
