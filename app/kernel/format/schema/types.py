"""Data types of the table format: their text form, their Arrow form, and what may be a key.

The text form is a small grammar, the same in the API, in Postgres and in the docs:

    boolean int8 int16 int32 int64 uint8 uint16 uint32 float double string binary date
    decimal(precision, scale)          precision 1–38, scale 0–precision
    timestamp  timestamp(ms)           an instant, UTC; microseconds by default
    timestamp_ntz  timestamp_ntz(ms)   a wall-clock time without zone
    list<T>  map<K, V>  struct<name: T, …>
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

_PRIMITIVES: Final[dict[str, pa.DataType]] = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.uint8(),
    "uint16": pa.uint16(),
    "uint32": pa.uint32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
}
_ALIASES: Final = {
    "bool": "boolean",
    "byte": "int8",
    "short": "int16",
    "int": "int32",
    "integer": "int32",
} | {"long": "int64", "bigint": "int64", "float32": "float", "float64": "double", "text": "string"}
_NEVER_KEYS: Final = frozenset({"float", "double"})
DEPTH_MAX: Final = 16
MEMBERS_MAX: Final = 2_000
DECIMAL_PRECISION_MAX: Final = 38


class TypeSyntaxError(ValueError):
    """The text is not a data type; the message says what was expected and where."""


@dataclass(frozen=True, slots=True)
class Primitive:
    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Decimal:
    precision: int
    scale: int

    def __post_init__(self) -> None:
        if not 1 <= self.precision <= DECIMAL_PRECISION_MAX:
            raise TypeSyntaxError(
                f"decimal precision must be 1–{DECIMAL_PRECISION_MAX}, not {self.precision}"
            )
        if not 0 <= self.scale <= self.precision:
            raise TypeSyntaxError(
                f"decimal scale must be 0–{self.precision} (the precision), not {self.scale}"
            )

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


@dataclass(frozen=True, slots=True)
class Timestamp:
    unit: str
    zoned: bool

    def __str__(self) -> str:
        name = "timestamp" if self.zoned else "timestamp_ntz"
        return name if self.unit == "us" else f"{name}({self.unit})"


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
                f"a map key must be a string, integer, boolean, date or timestamp, not {self.key}"
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


DataType = Primitive | Decimal | Timestamp | List | Map | Struct


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else "`" + name.replace("`", "``") + "`"


def to_arrow(data_type: DataType) -> pa.DataType:
    """The Arrow type of this type in data files and request bodies."""
    match data_type:
        case Primitive(name):
            return _PRIMITIVES[name]
        case Decimal(precision, scale):
            return pa.decimal128(precision, scale)
        case Timestamp(unit, zoned):
            return pa.timestamp(unit, tz="UTC" if zoned else None)
        case List(element):
            return pa.list_(pa.field("element", to_arrow(element)))
        case Map(key, value):
            return pa.map_(to_arrow(key), to_arrow(value))
        case Struct(members):
            return pa.struct([pa.field(name, to_arrow(member)) for name, member in members])


def may_be_key(data_type: DataType) -> bool:
    """Whether values of this type compare exactly, so that they can be record keys or partition values."""
    match data_type:
        case Primitive(name):
            return name not in _NEVER_KEYS
        case Decimal() | Timestamp():
            return True
        case _:
            return False


def may_be_ordered(data_type: DataType) -> bool:
    """Whether values have a total order that a merge can use (floats have: NaN is never stored)."""
    match data_type:
        case Primitive(name):
            return name not in {"binary", "boolean"}
        case Decimal() | Timestamp():
            return True
        case _:
            return False


def parse_type(text: str) -> DataType:
    """The data type that `text` names. Raises TypeSyntaxError, whose message says what is expected."""
    return _TypeParser(text, _tokens(text)).parse()


_TOKEN: Final = re.compile(r"\s*(?:(`(?:[^`]|``)*`)|([^\s<>(),:`]+)|([<>(),:]))")


def _tokens(text: str) -> Iterator[str]:
    end = len(text.rstrip())
    position = 0
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            raise TypeSyntaxError(f"cannot parse the type {text!r} at position {position}")
        yield match.group().strip()
        position = match.end()


class _TypeParser:
    def __init__(self, text: str, tokens: Iterator[str]) -> None:
        self.text = text
        self.tokens = [*tokens, ""]
        self.position = 0
        self.depth = 0
        self.members = 0

    def parse(self) -> DataType:
        parsed = self._type()
        if self._peek():
            raise TypeSyntaxError(f"unexpected {self._peek()!r} after {parsed} in the type {self.text!r}")
        return parsed

    def _peek(self) -> str:
        return self.tokens[self.position]

    def _next(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1]

    def _expect(self, token: str) -> None:
        found = self._next()
        if found != token:
            raise TypeSyntaxError(
                f"expected {token!r}, found {found or 'the end'!r} in the type {self.text!r}"
            )

    def _type(self) -> DataType:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise TypeSyntaxError(f"types may nest {DEPTH_MAX} deep at most")
        try:
            return self._named(self._next().lower())
        finally:
            self.depth -= 1

    def _named(self, word: str) -> DataType:
        name = _ALIASES.get(word, word)
        if name in _PRIMITIVES:
            return Primitive(name)
        match name:
            case "decimal":
                self._expect("(")
                precision = self._number()
                self._expect(",")
                scale = self._number()
                self._expect(")")
                return Decimal(precision, scale)
            case "timestamp" | "timestamp_ntz":
                return Timestamp(self._unit(), zoned=name == "timestamp")
            case "list":
                return List(self._bracketed()[0])
            case "map":
                arguments = self._bracketed(count=2)
                return Map(arguments[0], arguments[1])
            case "struct":
                return Struct(self._members())
        raise TypeSyntaxError(
            f"unknown type {word!r}; known are {', '.join(_PRIMITIVES)}, decimal(p, s), timestamp, timestamp(ms), "
            "timestamp_ntz, list<T>, map<K, V>, struct<name: T>"
        )

    def _number(self) -> int:
        token = self._next()
        if not token.isdecimal():
            raise TypeSyntaxError(
                f"expected a number, found {token or 'the end'!r} in the type {self.text!r}"
            )
        return int(token)

    def _unit(self) -> str:
        if self._peek() != "(":
            return "us"
        self._next()
        unit = self._next()
        if unit not in {"ms", "us"}:
            raise TypeSyntaxError(f"a timestamp's unit is ms or us, not {unit!r}")
        self._expect(")")
        return unit

    def _bracketed(self, count: int = 1) -> list[DataType]:
        self._expect("<")
        found = [self._type()]
        while len(found) < count:
            self._expect(",")
            found.append(self._type())
        self._expect(">")
        return found

    def _members(self) -> tuple[tuple[str, DataType], ...]:
        self._expect("<")
        members = []
        while True:
            self.members += 1
            if self.members > MEMBERS_MAX:
                raise TypeSyntaxError(f"a type has at most {MEMBERS_MAX} members of structs")
            name = self._next()
            self._expect(":")
            members.append((name[1:-1].replace("``", "`") if name.startswith("`") else name, self._type()))
            if self._peek() != ",":
                break
            self._next()
        self._expect(">")
        return tuple(members)
