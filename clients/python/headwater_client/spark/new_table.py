"""Datasets that a write registers, with the columns of its data frame, or a table with those of an option."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VarcharType,
)

from headwater_client.client import Headwater
from headwater_client.models import CreateField, Dataset
from headwater_client.new_dataset import NewDataset
from headwater_client.problem import Problem
from headwater_client.spark.options import InvalidOption, TableSettings, WriteSettings

_NAMES: Final[dict[type[DataType], str]] = {
    BooleanType: "boolean",
    ByteType: "int8",
    ShortType: "int16",
    IntegerType: "int32",
    LongType: "int64",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    CharType: "string",
    VarcharType: "string",
    BinaryType: "binary",
    DateType: "date",
    TimestampType: "timestamp",
    TimestampNTZType: "timestamp_ntz",
}

_FIELD: Final = re.compile(
    r"\s*(?:`(?P<quoted>[^`]+)`|(?P<name>[^\s`:]+))\s*[\s:]\s*(?P<type>\S.*?)\s*", re.DOTALL
)


def create_dataset(
    headwater: Headwater, settings: WriteSettings | TableSettings, fields: tuple[CreateField, ...]
) -> Dataset:
    """Registers the dataset, or returns the one that was registered meanwhile. Raises Problem."""
    new = NewDataset(
        name=settings.path,
        fields=fields,
        record_key=settings.record_key,
        ordering_field=settings.ordering_field,
        partition_by=settings.partition_by,
    )
    try:
        return headwater.create_dataset(new)
    except Problem as problem:
        if problem.code != "dataset-exists":
            raise
    return headwater.get_dataset(settings.path)


def fields_of(schema: StructType) -> tuple[CreateField, ...]:
    """The columns of rows. Raises InvalidOption for types that datasets do not have."""
    return tuple(CreateField(name=field.name, type=type_text(field.dataType)) for field in schema.fields)


def parsed_fields(text: str) -> tuple[CreateField, ...]:
    """Columns as in `id int64, place struct<city: string>`; names may be in backticks. Raises InvalidOption."""
    fields = []
    for part in _separated(text):
        match = _FIELD.fullmatch(part)
        if match is None:
            raise InvalidOption(
                f"option fields: expected names with types such as 'id int64, note string', not {part.strip()!r}"
            )
        fields.append(CreateField(name=match["quoted"] or match["name"], type=match["type"]))
    return tuple(fields)


def _separated(text: str) -> Iterator[str]:
    """The parts between the commas that are in no brackets or backticks."""
    start = depth = 0
    quoted = False
    for position, character in enumerate(text):
        if character == "`":
            quoted = not quoted
        elif not quoted:
            depth += (character in "<(") - (character in ">)")
            if character == "," and depth == 0:
                yield text[start:position]
                start = position + 1
    yield text[start:]


def type_text(kind: DataType) -> str:
    """The type of a column. Raises InvalidOption for types that datasets do not have."""
    match kind:
        case DecimalType():
            return f"decimal({kind.precision}, {kind.scale})"
        case ArrayType():
            return f"list<{type_text(kind.elementType)}>"
        case MapType():
            return f"map<{type_text(kind.keyType)}, {type_text(kind.valueType)}>"
        case StructType():
            members = (f"`{field.name}`: {type_text(field.dataType)}" for field in kind.fields)
            return f"struct<{', '.join(members)}>"
    if type(kind) not in _NAMES:
        raise InvalidOption(f"a dataset has no columns of the type {kind.simpleString()}")
    return _NAMES[type(kind)]
