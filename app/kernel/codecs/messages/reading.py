"""What the formats of messages have in common: columns with their converters, and faults."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from app.kernel.codecs.faults import below as pointer_below
from app.kernel.codecs.faults import shown
from app.kernel.format.schema.types import DEPTH_MAX, NOT_FINITE, TypeSyntaxError, parse_type
from app.kernel.format.schema.widening import why_not_wider

Convert = Callable[[Any], Any]


class BadMessage(ValueError):
    """A message that cannot be decoded. The text has the reason."""


class BadField(BadMessage):
    """A field of a record that cannot be a JSON value. The text has its JSON pointer in the record."""


class UnsupportedSchema(ValueError):
    """A schema whose values cannot be rows. The text has the place in it and the reason."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MessageColumn:
    """A value of a schema. `type`: of a dataset's field. `convert`: to a JSON value; None if it is one already."""

    type: str
    convert: Convert | None = None


class MessageReader(Protocol):
    """Decodes messages of one type. `members`: the columns of a record, by name; None if values are no records.
    `type`: of a field with such values.
    """

    members: dict[str, MessageColumn] | None
    type: str

    def decode(self, content: bytes) -> Any:
        """The value as `msgspec.json` encodes it: a dict for a record. Raises BadMessage."""
        ...


class MessageSchema(Protocol):
    """A schema of a registry."""

    def reader(self, payload: bytes) -> tuple[MessageReader, bytes]:
        """The reader of a message, and the part of its payload to read. Raises BadMessage."""
        ...


def add_columns(columns: dict[str, str], types: dict[str, str]) -> None:
    """Adds the types of columns, by name. A column that is known gets a wider type if one of the two holds both."""
    for name, text in types.items():
        old, new = parse_type(columns.get(name, text)), parse_type(text)
        if why_not_wider(old, new, explicit_cast=False) is None:
            columns[name] = text


def struct_of(members: dict[str, MessageColumn], place: str) -> str:
    """The type of a struct. Raises UnsupportedSchema."""
    if not members:
        raise UnsupportedSchema(f"{place}: a record without fields")
    inner = ", ".join(f"{_quoted(name)}: {column.type}" for name, column in members.items())
    return f"struct<{inner}>"


def checked_type(text: str, place: str) -> str:
    """The same type in the form of the service. Raises UnsupportedSchema."""
    try:
        return str(parse_type(text))
    except TypeSyntaxError as error:
        raise UnsupportedSchema(f"{place}: {error}") from None


def below(place: str, name: str, depth: int) -> str:
    """The place of a member. Raises UnsupportedSchema below the deepest level of a type."""
    if depth > DEPTH_MAX:
        raise UnsupportedSchema(f"{place}: it is nested more than {DEPTH_MAX} deep")
    return f"{place}.{name}" if place else name


def finite(value: float) -> float:
    """The same number. Raises BadMessage for NaN and infinity, which no field holds."""
    if not math.isfinite(value):
        raise BadMessage(f"{value}, {NOT_FINITE}")
    return value


def optional(convert: Convert | None) -> Convert | None:
    """The converter for a value that may be null."""
    if convert is None:
        return None
    return lambda value: None if value is None else convert(value)


def each(convert: Convert | None) -> Convert | None:
    """The converter for the elements of a list."""
    if convert is None:
        return None
    return lambda values: [convert(value) for value in values]


def each_value(convert: Convert | None) -> Convert | None:
    """The converter for the values of a map."""
    if convert is None:
        return None
    return lambda values: {name: convert(value) for name, value in values.items()}


def record(members: dict[str, MessageColumn]) -> Convert | None:
    """The converter for the members of a record, which it changes in place. It raises BadField."""
    converters = [(name, column.convert) for name, column in members.items() if column.convert is not None]
    if not converters:
        return None

    def convert(values: dict[str, Any]) -> dict[str, Any]:
        name = ""
        try:
            for name, converter in converters:
                values[name] = converter(values[name])
        except BadField as error:
            raise BadField(f"{pointer_below('', name)}{error}") from None
        except BadMessage as error:
            raise BadField(f"{pointer_below('', name)}: {error}") from None
        return values

    return convert


def listed(names: Sequence[str]) -> str:
    """Names for a message."""
    return ", ".join(map(shown, names))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
