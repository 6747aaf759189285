"""A dataset as a table of a Hive metastore: columns, types and the values of partitions.

boolean, float, double, string, binary, date, decimal(p, s)    the same
int8 int16 int32 int64     tinyint, smallint, int, bigint
uint8 uint16 uint32        the next larger type with a sign: smallint, int, bigint
timestamp, timestamp_ntz   timestamp: Hive's has no zone; an instant is written in UTC
list<T> map<K, V> struct<name: T, …>    array<T>, map<K,V>, struct<name:T,…>
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import msgspec

from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.partition.fields import PartitionField, parse_partition, partition_name
from app.kernel.format.partition.segments import read_segment
from app.kernel.format.schema.types import DataType, FlatType, List, Map, Struct

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
HIVE_NAME: Final = re.compile(r"[a-z0-9_]{1,128}")
# For these types Hive reads the values in paths. The partition columns of other types are the text of the path.
_PATH_TYPES: Final = frozenset({"tinyint", "smallint", "int", "bigint", "string", "date", "boolean"})
# The limits of Hive's own tables.
_COMMENT_CHARACTERS_MAX: Final = 256
EMPTY_VALUE: Final = "__EMPTY__"
"""Stands for the empty text, which the metastore does not accept as a partition value."""


class HiveColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A column of a Hive table."""

    name: str
    type: str
    comment: str | None = None


class HiveColumns(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a Hive table. Hive lists partition columns separately."""

    columns: tuple[HiveColumn, ...]
    partition_by: tuple[HiveColumn, ...]


def hive_columns(dataset: DatasetDefinition) -> HiveColumns:
    """The columns of the dataset in Hive. Raises ValueError if two would have one name: Hive's are lower case."""
    fields = [parse_partition(text) for text in dataset.partition_by]
    in_paths = {field.path[0] for field in fields if field.plain}
    table = HiveColumns(
        columns=tuple(
            HiveColumn(
                name=field.name.lower(),
                type=hive_type(field.data_type()),
                comment=field.doc and field.doc.replace("\0", "")[:_COMMENT_CHARACTERS_MAX],
            )
            for field in dataset.schema.fields
            if field.name not in in_paths
        ),
        partition_by=tuple(_partition_column(dataset, field) for field in fields),
    )
    names = Counter(column.name for column in (*table.columns, *table.partition_by))
    twice = [name for name, count in names.items() if count > 1]
    if twice:
        raise ValueError(
            f"two columns would be named {twice[0]!r} in Hive, whose names are lower case; rename one"
        )
    return table


def hive_type(data_type: DataType) -> str:
    """The name of the type in Hive."""
    match data_type:
        case FlatType():
            return data_type.hive
        case List(element):
            return f"array<{hive_type(element)}>"
        case Map(key, value):
            return f"map<{hive_type(key)},{hive_type(value)}>"
        case Struct(members):
            members_text = ",".join(f"{_plain(name)}:{hive_type(member)}" for name, member in members)
            return f"struct<{members_text}>"


def hive_values(dataset: DatasetDefinition, path: str) -> tuple[str, ...]:
    """The values of a partition, in the order of its columns. A value that the path shortens stays shortened."""
    values = []
    for text, segment in zip(dataset.partition_by, path.split("/"), strict=True):
        value_text = segment.partition("=")[2]
        value = read_segment(segment, partition_name(parse_partition(text)))
        # The path has a text for null, which is also Hive's.
        values.append((value_text if value is None else value) or EMPTY_VALUE)
    return tuple(values)


def values_in_name(name: str) -> tuple[str, ...]:
    """The values in the metastore's name of a partition: `country=DE/day=2026-11-22`, with some characters escaped."""
    texts = (segment.partition("=")[2] for segment in name.split("/"))
    return tuple(_ESCAPE.sub(lambda code: chr(int(code[1], 16)), value) for value in texts)


def _partition_column(dataset: DatasetDefinition, field: PartitionField) -> HiveColumn:
    source = hive_type(dataset.schema.field(field.path[0]).data_type()) if field.plain else "string"
    type_ = source if source in _PATH_TYPES else "string"
    return HiveColumn(name=_plain(partition_name(field)), type=type_, comment=field.text)


def _plain(name: str) -> str:
    """The name with the characters that Hive accepts without quotes."""
    return re.sub(r"\W", "_", name).lower()
