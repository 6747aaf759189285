"""The types of values inside a view: Spark's types, with Headwater's names."""

from __future__ import annotations

import re

from app.kernel.format.schema.types import DataType, FlatType, List, Map, Struct


def relation_type(data_type: DataType) -> DataType:
    """The type of a column of a dataset inside a view, and of a column of the view's result.

    Spark has no unsigned integers, and one unit of time: uint8 is read as int16, uint16 as int32, uint32 as int64, and
    timestamp(ms) as timestamp, also inside of lists, maps and structs. The conversions are lossless.
    """
    match data_type:
        case FlatType():
            return data_type.relation
        case List(element):
            return List(relation_type(element))
        case Map(key, value):
            return Map(relation_type(key), relation_type(value))
        case Struct(members):
            return Struct(tuple((name, relation_type(member)) for name, member in members))


def spark_type(data_type: DataType) -> str:
    """The type in Spark's SQL. `data_type` is a `relation_type`."""
    match data_type:
        case FlatType():
            return data_type.spark
        case List(element):
            return f"ARRAY<{spark_type(element)}>"
        case Map(key, value):
            return f"MAP<{spark_type(key)}, {spark_type(value)}>"
        case Struct(members):
            return f"STRUCT<{', '.join(f'{quoted(name)}: {spark_type(member)}' for name, member in members)}>"


def quoted(name: str) -> str:
    """A name in Spark's SQL, with any characters."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string in Spark's SQL. Special characters are escaped by their number."""
    return "'" + re.sub(r"[^ !#%&(-\[\]-~]", _escaped, text) + "'"


def _escaped(character: re.Match[str]) -> str:
    number = ord(character.group())
    return f"\\u{number:04X}" if number <= 0xFFFF else f"\\U{number:08X}"
