"""`list<T>`, `map<K, V>` and `struct<name: T, …>`: types of values with parts."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pyarrow as pa

from app.kernel.format.schema.types.flat import FlatType
from app.kernel.format.schema.types.syntax_error import TypeSyntaxError


@dataclass(frozen=True, slots=True)
class List:
    element: DataType

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True, slots=True)
class Map:
    key: DataType
    value: DataType

    def __post_init__(self) -> None:
        if not may_be_key(self.key):
            raise TypeSyntaxError(
                "a map key must be a boolean, integer, decimal, string, binary, uuid, date or timestamp, "
                f"not {self.key}"
            )

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


@dataclass(frozen=True, slots=True)
class Struct:
    members: tuple[tuple[str, DataType], ...]

    def __post_init__(self) -> None:
        names = [name for name, _ in self.members]
        if not names:
            raise TypeSyntaxError("a struct needs at least one member")
        if len(set(names)) != len(names):
            raise TypeSyntaxError("the members of a struct must have different names")

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{_quoted(name)}: {member}' for name, member in self.members)}>"


DataType = FlatType | List | Map | Struct


def to_arrow(data_type: DataType) -> pa.DataType:
    """The Arrow type of this type in data files and request bodies."""
    match data_type:
        case FlatType():
            return data_type.arrow
        case List(element):
            return pa.list_(pa.field("element", to_arrow(element)))
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))
        case Struct(members):
            return pa.struct([pa.field(name, to_arrow(member)) for name, member in members])


def may_be_key(data_type: DataType) -> bool:
    """Whether values of this type compare exactly, so that they can be record keys or partition values."""
    return isinstance(data_type, FlatType) and data_type.may_be_key


def has_order(data_type: DataType) -> bool:
    """Whether values have a total order that a merge can use."""
    return isinstance(data_type, FlatType) and data_type.has_order


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"
