"""The text form of types: a small grammar, the same in the API, in Postgres and in the docs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from app.kernel.format.schema.types.decimals import Decimal
from app.kernel.format.schema.types.names import PLAIN_TYPES
from app.kernel.format.schema.types.nested import DataType, List, Map, Struct
from app.kernel.format.schema.types.syntax_error import TypeSyntaxError
from app.kernel.format.schema.types.timestamps import TICKS, Timestamp

DEPTH_MAX: Final = 16
MEMBERS_MAX: Final = 2_000
# Of the texts whose types are cached: nearly all are shorter, and long ones would fill the memory.
_CACHED_CHARACTERS_MAX: Final = 64
_NAMES: Final = {name: each for each in PLAIN_TYPES for name in (str(each), *each.synonyms)}


def parse_type(text: str) -> DataType:
    """The data type that `text` names. Raises TypeSyntaxError, whose message says what is expected."""
    return _short_type(text) if len(text) <= _CACHED_CHARACTERS_MAX else _parsed(text)


def _parsed(text: str) -> DataType:
    return _TypeParser(text, _tokens(text)).parse()


# Planning needs the types of columns for each partition and file.
_short_type = lru_cache(maxsize=4_096)(_parsed)


def parse_columns(text: str) -> tuple[tuple[str, DataType], ...]:
    """The columns that a text such as `id: int64, price: decimal(9, 2)` names, in order: what a struct has in brackets.

    Raises TypeSyntaxError.
    """
    return _TypeParser(text, _tokens(text)).parse_columns()


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
        data_type = self._type()
        if self._peek():
            raise TypeSyntaxError(f"unexpected {self._peek()!r} after {data_type} in the type {self.text!r}")
        return data_type

    def parse_columns(self) -> tuple[tuple[str, DataType], ...]:
        columns = self._members()
        if self._peek():
            raise TypeSyntaxError(f"unexpected {self._peek()!r} after {columns[-1][1]} in {self.text!r}")
        return columns

    def _peek(self) -> str:
        return self.tokens[self.position]

    def _next(self) -> str:
        """The next token; an empty one at the end and behind it."""
        token = self._peek()
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def _expect(self, token: str) -> None:
        next_token = self._next()
        if next_token != token:
            raise TypeSyntaxError(
                f"expected {token!r}, found {next_token or 'the end'!r} in the type {self.text!r}"
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
        if word in _NAMES:
            return _NAMES[word]
        match word:
            case "decimal":
                self._expect("(")
                precision = self._number()
                self._expect(",")
                scale = self._number()
                self._expect(")")
                return Decimal(precision, scale)
            case "timestamp" | "timestamp_ntz":
                return Timestamp(self._unit(), zoned=word == "timestamp")
            case "list":
                return List(self._bracketed()[0])
            case "map":
                arguments = self._bracketed(count=2)
                return Map(arguments[0], arguments[1])
            case "struct":
                self._expect("<")
                members = self._members()
                self._expect(">")
                return Struct(members)
        raise TypeSyntaxError(
            f"unknown type {word!r}; known are {', '.join(map(str, PLAIN_TYPES))}, decimal(p, s), timestamp, "
            "timestamp(ms), timestamp_ntz, list<T>, map<K, V>, struct<name: T>"
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
        if unit not in TICKS:
            raise TypeSyntaxError(f"a timestamp's unit is ms or us, not {unit!r}")
        self._expect(")")
        return unit

    def _bracketed(self, count: int = 1) -> list[DataType]:
        self._expect("<")
        types = [self._type()]
        while len(types) < count:
            self._expect(",")
            types.append(self._type())
        self._expect(">")
        return types

    def _members(self) -> tuple[tuple[str, DataType], ...]:
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
        return tuple(members)
