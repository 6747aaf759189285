"""Columns that a table is published without: those of `uint32` in files of earlier releases.

Such files annotate the values as unsigned (`app/kernel/format/rows/file_columns.py`). Spark and Delta refuse them, and
another footer does not help: the values have 32 bits, and Iceberg's `long` has 64. The other unsigned types are read as
`int` without their annotation.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec.structs import replace

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.fields import partition_sources
from app.kernel.format.partition.members import roots
from app.kernel.format.schema.schema import Field, Schema
from app.kernel.format.schema.types import DataType
from app.kernel.format.schema.types.integer import UINT32
from app.kernel.format.schema.types.nested import member_types


def unsigned_columns(schemas: Iterable[Schema]) -> frozenset[int]:
    """The ids of the columns that have a `uint32`, or one in them, under any of these schemas."""
    return frozenset(field.id for schema in schemas for field in schema.fields if _has_unsigned(field))


def _has_unsigned(field: Field) -> bool:
    kind = field.data_type()
    types: list[DataType] = [kind, *(member for _, member in member_types(kind))]
    return UINT32 in types


def without_columns(definition: DatasetDefinition, omit: Collection[int]) -> DatasetDefinition:
    """The dataset without these columns. If one is in `partition_by`, it is without partitions."""
    names = definition.schema.names()
    schema = replace(
        definition.schema, fields=tuple(each for each in definition.schema.fields if each.id not in omit)
    )
    remaining = set(schema.names())
    ordering = definition.ordering_field

    def stays(text: str) -> bool:
        return roots([text], names)[0] in remaining

    return replace(
        definition,
        schema=schema,
        record_key=tuple(filter(stays, definition.record_key)),
        ordering_field=ordering if ordering is not None and stays(ordering) else None,
        partition_by=definition.partition_by if remaining.issuperset(partition_sources(definition)) else (),
    )
