"""`list<T>`, `map<K, V>` and `struct<name: T, …>`: types of values with parts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

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
FIELD_ID_METADATA: Final = b"PARQUET:field_id"
_NO_IDS: Final[Mapping[str, int]] = MappingProxyType({})


def id_metadata(number: int) -> dict[bytes, bytes]:
    """The metadata of an Arrow field that Parquet keeps as `field_id`."""
    return {FIELD_ID_METADATA: str(number).encode()}


def to_arrow(data_type: DataType, member_ids: Mapping[str, int] = _NO_IDS, path: str = "") -> pa.DataType:
    """The Arrow type of this type in data files and request bodies.

    `member_ids`: of the members of the column, by their paths; `path`: that of this type, empty for the column.
    """

    def member(name: str, member_type: DataType, *, nullable: bool = True) -> pa.Field:
        below = member_path_below(path, name)
        number = member_ids.get(below)
        return pa.field(
            name,
            to_arrow(member_type, member_ids, below),
            nullable=nullable,
            metadata=None if number is None else id_metadata(number),
        )

    match data_type:
        case FlatType():
            return data_type.arrow
        case List(element):
            return pa.list_(member("element", element))
        case Map(key, value):
            return pa.map_(member("key", key, nullable=False), member("value", value))
        case Struct(members):
            return pa.struct([member(name, each) for name, each in members])


def member_types(data_type: DataType, path: str = "") -> Iterator[tuple[str, DataType]]:
    """The path and the type of each member, those of members included: the outer ones first.

    A path has `element` of a list, `key` and `value` of a map, and the names of the members of structs, joined by dots.
    A name with a dot or a backtick is in backticks. `path`: that of the type itself, empty for a column.
    """
    for name, each in _parts(data_type):
        below = member_path_below(path, name)
        yield below, each
        yield from member_types(each, below)


def member_path_below(path: str, name: str) -> str:
    """The path of the member with this name of the type at `path`."""
    step = "`" + name.replace("`", "``") + "`" if "." in name or "`" in name else name
    return f"{path}.{step}" if path else step


def _parts(data_type: DataType) -> Sequence[tuple[str, DataType]]:
    match data_type:
        case List(element):
            return (("element", element),)
        case Map(key, value):
            return (("key", key), ("value", value))
        case Struct(members):
            return members
    return ()


def may_be_key(data_type: DataType) -> bool:
    """Whether values of this type compare exactly, so that they can be record keys or partition values."""
    return isinstance(data_type, FlatType) and data_type.may_be_key


def has_order(data_type: DataType) -> bool:
    """Whether values have a total order that a merge can use."""
    return isinstance(data_type, FlatType) and data_type.has_order


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"
